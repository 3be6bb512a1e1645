# frozen_string_literal: true

require "tempfile"
require "pitwall/errors"
require "pitwall/experiment"
require "pitwall/workspace"
require "pitwall/workspace/commit_range"

module Pitwall
  module CLI
    # The part of `compare` that measures the commits of a range: `--each` and `--bisect`.
    module MeasuredCommits
      # Options that have no meaning for a range of commits.
      NOT_OF_RANGES = %i[control check why instructions syscalls retained predicted recording].freeze
      LATE = "no commit before it can be built"
      private_constant :NOT_OF_RANGES, :LATE

      private

      def define_commit_options(parser)
        parser.separator("Of a range of commits")
        parser.on("--each RANGE", "each commit against the one before it, then all together: main..HEAD") do |range|
          @options[:each] = range
        end
        parser.on("--bisect RANGE", "search the commit that changed it: GOOD..BAD") do |range|
          @options[:bisect] = range
        end
        parser.separator("")
      end

      def range? = !range_text.nil?

      def range_text = @options[:each] || @options[:bisect]

      def range_option = @options[:each] ? "--each" : "--bisect"

      #: (Array[String]) -> Integer
      def compare_commits(files)
        script = script_path(files)
        code = check_range_options(script)
        check_output(files)
        Workspace.open(script: script, command: @command, on_step: progress.method(:step),
                       **workspace_settings) do |workspace|
          range = workspace.range(range_text)
          next bisect(workspace, range, code) if @options[:bisect]

          trees, skipped = trees(workspace, range, code)
          progress.end
          workspace.notes.each { |note| @err.puts("pitwall: #{note}") }
          say(range, skipped)
          measure_each(workspace, range, trees, skipped, code)
        rescue Pitwall::Bench::Failed => error
          raise error.class, workspace.explain(CLI.message(error))
        end
      end

      # @return [String, nil] the code of -e
      # @raise [UsageError] an option or a side that has no meaning here
      def check_range_options(script)
        given = [*NOT_OF_RANGES, *(%i[each fail_if] if @options[:bisect])].find { |name| @options[name] }
        given = given.to_s.tr("_", "-") if given
        raise UsageError, "#{range_option}: leave out --#{given}" if given

        code = sides.code_alone
        if sides.any? && code.nil?
          raise UsageError, "#{range_option} measures the commits of a range; it takes no other sides"
        end
        return code if [script, code, @command].compact.one?
        raise UsageError, "nothing to run: name BENCH.rb, -e CODE or -- COMMAND" if [script, code, @command].none?

        raise UsageError, "a benchmark file, -e and -- COMMAND: measure one of them"
      end

      # The trees that can be built, the base first, and the commits that are not measured. A commit that can't be
      # built belongs to the next one that can.
      def trees(workspace, range, code)
        skipped = []
        waiting = []
        trees = [range.base, *range.commits].filter_map do |commit|
          based = commit.id == range.base.id
          reason = without_effect(workspace, range, commit, code) unless based
          next skip(skipped, commit, reason) if reason

          tree = build(workspace, commit, code) { |failure| skip(skipped, commit, failure) }
          waiting << facts(commit) unless based
          next unless tree

          tree.commits, waiting = waiting, []
          tree
        end
        late = trees.first&.commits.to_a
        skip(skipped, range.commits.find { |each| each.id == late.last["id"] }, LATE) if late.any?
        return [trees, skipped] if trees.size > 1

        reason = skipped.last && ": #{skipped.last["id"][0, 8]} #{skipped.last["reason"]}"
        raise CannotMeasure, "#{range_text}: nothing to compare#{reason}"
      end

      def skip(skipped, commit, reason)
        skipped << facts(commit).merge("reason" => reason)
        nil
      end

      def facts(commit) = { "id" => commit.id, "title" => commit.title.to_s }

      # Why a commit can't change what is measured; nil if it can.
      def without_effect(workspace, range, commit, code)
        paths = range.paths(commit)
        return "changes no files" if paths.empty?
        return if workspace.reaching(paths, code: code).any?

        "changes nothing that is measured (#{paths.first(3).join(", ")}#{" and more" if paths.size > 3})"
      end

      # The tree of a commit; nil where it can't be built.
      # @yield [String] the reason
      def build(workspace, commit, code)
        side = Workspace::Side.new(rev: commit.id, name: commit.short, code: code)
        Experiment::Commits::Tree.new(workspace.subjects([side]).first, [])
      rescue Workspace::BuildFailed => error
        yield error.message
        nil
      end

      def say(range, skipped)
        merges = range.commits.count(&:merge?)
        if merges.positive?
          @err.puts("pitwall: #{range_text}: #{Show::Units.things(merges, "merge")} in it: all that a merge brings " \
                    "is measured as one commit, against its first parent")
        end
        skipped.each do |commit|
          words = Show::Text.line("#{commit["id"][0, 8]} #{commit["title"]}: #{commit["reason"]}")
          @err.puts("pitwall: not measured: #{words}")
        end
      end

      def measure_each(workspace, range, trees, skipped, code)
        # Any of the comparisons can make the status 1. So all of them share alpha.
        alpha = @options.fetch(:alpha, 0.01) / Experiment::Commits.comparisons(trees.size - 1)
        settings = settings(**@options.slice(:margin, :max_blocks, :in_turns), alpha: alpha)
        sides = [[Experiment::Places::BEFORE, trees.first], [Experiment::Places::AFTER, trees.last]]
        sides = sides.map { |name, tree| { "name" => name, "facts" => tree.subject.facts } }
        report = record(head(settings, sides)) do |writer|
          experiment = Experiment::Commits.new(trees, settings, range: range_text, skipped: skipped, record: writer,
                                                                explain: workspace.method(:explain),
                                                                progress: progress) do |commit|
            apart(workspace, range, commit, code)
          end
          run_experiment(experiment, writer, commits: experiment.facts)
        ensure
          experiment&.close
        end
        progress.end
        conclude(report)
      end

      def bisect(workspace, range, code)
        commits, skipped = [range.base, *range.commits].each_with_object([[], []]) do |commit, (kept, left)|
          reason = without_effect(workspace, range, commit, code) unless commit.id == range.base.id
          reason ? skip(left, commit, reason) : kept << facts(commit)
        end
        raise CannotMeasure, "#{range_text}: no commit of it changes what is measured" if commits.size < 2

        say(range, skipped)
        settings = settings(**@options.slice(:alpha, :margin, :max_blocks, :in_turns))
        names = [Experiment::Places::BEFORE, Experiment::Places::AFTER]
        report = record(head(settings, names.map { |name| { "name" => name, "facts" => {} } })) do |writer|
          experiment = Experiment::Bisection.new(commits, settings, range: range_text, skipped: skipped, record: writer,
                                                                    explain: workspace.method(:explain),
                                                                    progress: progress) do |commit|
            side = Workspace::Side.new(rev: commit["id"], name: commit["id"][0, 8], code: code)
            workspace.subjects([side]).first
          end
          run_experiment(experiment, writer, search: experiment.facts)
        ensure
          experiment&.close
        end
        progress.end
        conclude(report)
      end

      # The change of a commit on the base of the range.
      def apart(workspace, range, commit, code)
        own = range.commits.find { |each| each.id == commit["id"] }
        path = File.join(workspace.scratch("alone"), "#{own.short}.diff")
        range.write_patch(own, path)
        side = Workspace::Side.new(rev: range.base.id, name: "#{own.short}, alone", patches: [path], code: code)
        workspace.subjects([side]).first
      end
    end
  end
end
