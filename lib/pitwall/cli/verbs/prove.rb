# frozen_string_literal: true

require "pitwall/cli/measuring/proof_file"
require "pitwall/cli/support/command"
require "pitwall/cli/support/output_file"
require "pitwall/cli/verbs/proof_repetition"
require "pitwall/errors"
require "pitwall/views/hints"
require "pitwall/workspace/commit_hook"
require "pitwall/workspace/commits"

module Pitwall
  module CLI
    # `pitwall prove`: a comparison's result for commits and pull requests, and the check that it still holds.
    class Prove < Command
      FORMATS = %w[trailers json markdown junit].freeze
      KEPT = ".pitwall"
      HOOK = "prove --hook"
      ACTIONS = %i[amend note check install_hook remove_hook hook].freeze
      private_constant :FORMATS, :KEPT, :HOOK, :ACTIONS

      class << self
        #: () -> String
        def summary = "puts a comparison into a commit or pull request, and checks it"

        #: () -> Array[[String, String]]
        def examples
          [
            ["pitwall prove --amend", "the newest comparison as trailers of HEAD's message"],
            ["pitwall prove --check HEAD", "measure again: does the commit's proof hold?"]
          ]
        end

        #: () -> String
        def usage = "[options] [FILE.jsonl]"
      end

      #: (OptionParser) -> void
      def define_options(parser)
        parser.separator("Without a FILE the newest comparison in #{KEPT}/ is taken (of a commit: the newest of it)")
        parser.on("--format FORMAT", FORMATS, "#{FORMATS.join(", ")} (trailers)") { |name| @options[:format] = name }
        parser.on("--out FILE", "instead of standard output") { |file| @options[:out] = file }
        parser.separator("")
        parser.separator("Into a commit")
        parser.on("--amend", "add trailers to HEAD's message; a signed HEAD is refused") { @options[:amend] = true }
        parser.on("--note COMMIT", "add them to a note (refs/notes/pitwall); the commit stays as it is") do |name|
          @options[:note] = name
        end
        parser.on("--install-hook", "add them to each commit that has what was measured (prepare-commit-msg)") do
          @options[:install_hook] = true
        end
        parser.on("--remove-hook", "remove that hook, and restore the one before it") { @options[:remove_hook] = true }
        parser.on("--hook", "what the hook calls") { @options[:hook] = true }
        parser.separator("")
        parser.separator("Check")
        again = "measure a commit's proof again: status 0 it holds, 1 it doesn't, 3 undecided"
        parser.on("--check COMMIT", again) { |name| @options[:check] = name }
        budget = "with --check: seconds for each case (as the proof's command has it)"
        parser.on("--budget SECONDS", Float, budget) do |seconds|
          raise UsageError, "--budget #{seconds}: must be more than 0" unless seconds.positive?

          @options[:budget] = seconds
        end
      end

      #: (Array[String]) -> Integer
      def run(files)
        actions = ACTIONS & @options.keys
        check_options(actions, files)
        return show(files) if actions.empty?

        case actions.first
        when :amend then amend(files)
        when :note then note(files)
        when :check then check
        when :hook then hook(files)
        else change_hook(actions.first)
        end
      rescue Workspace::Git::Failed => error
        raise UsageError, "git: #{error.message}"
      end

      private

      def check_options(actions, files)
        names = actions.map { |action| "--#{action.to_s.tr("_", "-")}" }
        raise UsageError, "#{names.join(" and ")}: one at a time" if names.size > 1
        if @options[:budget] && actions != [:check]
          raise UsageError, "--budget: is for --check, which measures"
        end

        given = %i[format out].find { |name| @options[name] }
        raise UsageError, "#{names.first}: leave out --#{given}" if given && actions.any? && actions != [:check]
        if actions == [:check] && @options.fetch(:format, "json") != "json"
          raise UsageError, "--check: has text and --format json"
        end
        if actions == [:hook]
          raise UsageError, "--hook: is for the hook; --install-hook installs it" if files.empty?

          return
        end

        most = [[], [:amend], [:note]].include?(actions) ? 1 : 0
        raise UsageError, "#{files[most]}: #{most.zero? ? "#{names.first} takes no file" : "one file"}" if files[most]
      end

      # --- what a comparison says

      def show(files)
        file = files.any? ? ProofFile.at(files.first) : newest
        OutputFile.check(@options[:out], [file.path]) if to_file?
        text = render(file)
        to_file? ? OutputFile.write(@options[:out]) { |out| out.puts(text) } : @out.puts(text)
        @err.puts("pitwall: of #{relative(file.path)}") if files.empty?
        Status::OK
      end

      def to_file? = @options[:out] && @options[:out] != "-"

      def render(file)
        facts = [file.report, file.repeat]
        case @options[:format]
        when "json" then Show::ProofJson.new(*facts, version: file.version).to_s
        when "markdown" then Show::ProofMarkdown.new(*facts, version: file.version, hints: Views::Hints).to_s
        when "junit" then Show::ProofJunit.new(*facts, version: file.version).to_s
        else file.trailers.map { |pair| pair.join(": ") }.join("\n")
        end
      end

      def newest = kept.first || raise(UsageError, "no comparison in #{KEPT}/: pitwall compare makes one")

      # The comparisons of this folder and of the top of its repository.
      def kept
        top = Workspace::Repository.find(Dir.pwd)&.top
        folders = [Dir.pwd, top, top && File.join(top, ENV.fetch("GIT_PREFIX", ""))].compact.uniq
        @kept ||= ProofFile.in(folders.map { |folder| File.join(folder, KEPT) })
      end

      def relative(path) = path.delete_prefix("#{Dir.pwd}/")

      # --- into commits

      def commits = @commits ||= Workspace::Commits.new(Dir.pwd, prefix: Record::Proof::KEY)

      def amend(files)
        commit = commits.find("HEAD")
        if commit.signed
          raise UsageError, "HEAD (#{about(commit)}) is signed, and a new message would need a new signature: " \
                            "--note HEAD leaves the commit as it is"
        end

        file = fitting(files, commit)
        amended = commits.amend(commit, file.trailers(commit.tree))
        @err.puts("pitwall: #{about(amended)} has the proof of #{relative(file.path)} (it was #{commit.id[0, 10]})")
        tell_of_benchmark(file)
      end

      def note(files)
        commit = commits.find(@options[:note])
        file = fitting(files, commit)
        commits.annotate(commit, file.trailers(commit.tree))
        @err.puts("pitwall: the note of #{about(commit)} has the proof of #{relative(file.path)}; " \
                  "git log --notes=pitwall shows it")
        tell_of_benchmark(file)
      end

      # The comparison whose side has the commit's files.
      # @raise [UsageError]
      def fitting(files, commit)
        file = files.any? ? ProofFile.at(files.first) : kept.find { |each| each.of?(commit.tree, commits.repository) }
        if file.nil?
          raise UsageError, "no comparison in #{KEPT}/ has measured the files of #{about(commit)}: " \
                            "pitwall compare --rev #{commit.id[0, 10]}~1 --rev #{commit.id[0, 10]} … measures them"
        end
        return file if file.repeat.nil? || file.of?(commit.tree, commits.repository)

        mend = "name the commit it measured"
        mend = "commit what was measured, all of it and nothing else" if file.uncommitted?
        raise UsageError, "#{file.path}: has measured other files than those of #{about(commit)}: #{mend}"
      end

      # Others need the benchmark file to repeat the proof.
      def tell_of_benchmark(file)
        path, blob = file.repeat["benchmark"].to_h.values_at("path", "blob")
        return Status::OK if path.nil? || commits.repository.id(blob.to_s, "blob")

        @err.puts("pitwall: #{path} isn't committed as it was measured, so only this working tree can repeat the proof")
        Status::OK
      end

      def about(commit) = Show::Text.line([commit.id[0, 10], commit.title].reject(&:empty?).join(" "))

      # --- the hook

      def change_hook(action)
        hook = Workspace::CommitHook.new(commits.repository, words: HOOK)
        before = File.basename(hook.path + Workspace::CommitHook::KEPT)
        words = { installed: "installed", chained: "installed; the hook that was there is #{before} and runs first",
                  removed: "removed", restored: "removed; the hook that was there before is back",
                  unchanged: action == :install_hook ? "is installed already" : "there is none of Pitwall's" }
        done = action == :install_hook ? hook.install : hook.remove
        @err.puts("pitwall: #{relative(hook.path)}: #{words.fetch(done)}")
        Status::OK
      end

      # Adds the trailers of the newest comparison of what is being committed. Never keeps git from committing.
      # @param arguments as git gives them: the file of the message, where the message came from, a commit
      def hook(arguments)
        path, source, = arguments
        add_to_message(path) unless %w[merge squash].include?(source)
        Status::OK
      rescue Error, Workspace::Git::Failed, SystemCallError => error
        words = error.is_a?(Error) ? CLI.message(error) : error.message
        @err.puts("pitwall: no proof added: #{Show::Text.line(words)}")
        Status::OK
      end

      def add_to_message(path)
        index = ENV["GIT_INDEX_FILE"]
        tree = commits.staged_tree(index && File.expand_path(index)) or return
        file = kept.find { |each| each.of?(tree, commits.repository) } or return tell_of_other(path, tree)
        commits.write(path, file.trailers(tree))
        tell_of_benchmark(file) if file.repeat["benchmark"]
      end

      # Where changes since HEAD were measured, and others are committed.
      def tell_of_other(path, tree)
        head = commits.repository.id("HEAD", "tree")
        file = kept.find { |each| head && each.uncommitted? && each.base?(head) }
        if file
          @err.puts("pitwall: no proof added: #{relative(file.path)} has measured other files than these")
        elsif (lines = commits.trailers_in(path)).any? && Record::Proof.read(lines).tree != tree
          @err.puts("pitwall: the message's proof is of other files than these; pitwall prove --amend replaces it")
        end
      end

      # --- the check

      def check
        OutputFile.check(@options[:out], []) if to_file?
        commit = commits.find(@options[:check])
        lines = commits.trailers(commit)
        if lines.empty?
          raise UsageError, "#{about(commit)}: has no proof: neither #{Record::Proof::KEY}… trailers nor a note " \
                            "(git fetch origin #{Workspace::Commits::NOTES}:#{Workspace::Commits::NOTES} gets notes)"
        end

        repetition = ProofRepetition.new(commits, commit, proof(commit, lines), out: @out, err: @err)
        outcome = repetition.call(budget: @options[:budget])
        view = Show::ProofCheckView.new(outcome, proof: repetition.proof, report: repetition.report,
                                                 commit: about(commit), notes: repetition.notes, version: VERSION)
        text = @options[:format] == "json" ? view.json : view.lines(width: width, palette: palette).join("\n")
        to_file? ? OutputFile.write(@options[:out]) { |out| out.puts(text) } : @out.puts(text)
        { holds: Status::OK, fails: Status::WORSE, undecided: Status::UNDECIDED }.fetch(outcome.verdict)
      end

      def proof(commit, lines)
        Record::Proof.read(lines)
      rescue BadRecording => error
        raise BadRecording, "#{about(commit)}: its proof is damaged: #{error.message}"
      end
    end
  end
end
