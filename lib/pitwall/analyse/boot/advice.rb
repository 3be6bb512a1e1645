# frozen_string_literal: true

module Pitwall
  module Analyse
    class Boot
      # What to do about a boot's time, the largest predicted saving first.
      #
      # kind:      "compile_cache", "cold_cache", "late_cache", "time_zones", "heap", "exec", "debugger", "gem",
      #            "initializer", "repeats", "failed", "own_code"; "unused_gem" and "unused_file", only if the
      #            recording knows which files were used
      # saving_ns: predicted, an upper bound where `bound` is true
      # subject:   the gem, file or initializer; nil: the whole boot
      # place:     [path, line] that asks for it; nil: none
      # figures:   numbers for the sentence
      Advice = Struct.new(:kind, :saving_ns, :bound, :subject, :place, :figures, keyword_init: true)

      # Finds advice in a boot.
      class Advising
        # An assumption (doc/boot.md): reading compiled code takes this part of the time to find, read and compile the
        # source.
        CACHED = 0.4
        # Less than this part of the boot is not worth a line.
        LEAST = 0.01
        MOST = 12
        GEMFILE = %r{(?:\A|/)(?:[^/]*Gemfile[^/]*|gems\.rb)\z}.freeze
        OWN = %r{/pitwall/fastboot|/bootsnap}.freeze
        SESSION = %r{/debug/session\.rb\z}.freeze # the file of the gem debug that starts its thread
        private_constant :CACHED, :LEAST, :MOST, :GEMFILE, :OWN, :SESSION

        #: (Boot) -> void
        def initialize(boot)
          @boot = boot
          @least = boot.wall_ns * LEAST
        end

        #: () -> Array[Advice]
        def all
          found = [*compile_cache, time_zones, *heap, replaced_process, debug_gem, *gems, *unused_files, *initializers,
                   *own_code, *repeats, *failed].compact
          found.select { |advice| advice.saving_ns >= @least }.sort_by { |advice| -advice.saving_ns }.first(MOST)
        end

        private

        def advice(kind, saving, bound: false, subject: nil, place: nil, **figures)
          Advice.new(kind: kind, saving_ns: saving.round, bound: bound, subject: subject, place: place,
                     figures: figures)
        end

        def main = @main ||= @boot.nodes.select { |node| @boot.main?(node) }

        def compile_cache
          sources = main.select { |node| node.row.compile_ns.positive? }
          return [saved_by_cache("compile_cache", sources)] if @boot.caches.empty? && !@boot.bootsnap?
          return [] if @boot.caches.empty?

          [*cold_caches(sources), late_cache(sources)]
        end

        # Files that a cache did not have, and could have kept since.
        def cold_caches(sources)
          cold = sources.select { |node| node.cached? == false && Cached.curable?(node) }
          cold.group_by { |node| Cached.name(node) }.map { |name, nodes| saved_by_cache("cold_cache", nodes, name) }
        end

        # Files for which no cache was asked. The files of the caches themselves are left out: no cache runs yet when
        # they are loaded.
        def late_cache(sources)
          early = sources.select { |node| node.cached?.nil? && !node.path.match?(OWN) }
          saved_by_cache("late_cache", early, @boot.caches.first.name)
        end

        def saved_by_cache(kind, sources, name = nil)
          spent = sources.sum(&:compile_ns)
          advice(kind, spent * (1 - CACHED), subject: name, files: sources.map(&:path).uniq.size, ns: spent)
        end

        # Files for which no cache was asked.
        def time_zones
          zones = main.select { |node| node.row.kind == "zoneinfo" && node.cached?.nil? }
          return if zones.empty?

          advice("time_zones", zones.sum { |node| node.total[:wall] }, bound: true, place: asked_at(zones),
                 files: zones.map(&:path).uniq.size)
        end

        # A heap that is large enough from the start needs no collection.
        def heap
          figures = @boot.figures
          [advice("heap", figures[:gc], bound: true, runs: figures[:gc_runs], slots: @boot.heap_slots)]
        end

        def replaced_process
          advice("exec", @boot.before_exec_ns, subject: ("Bundler" if @boot.restarted_by_bundler?))
        end

        # The gem debug has a TracePoint. A thread that has compiled a file or a string tells the gem's thread, and
        # waits for its reply. If session.rb has loaded nothing, the gem was switched off.
        def debug_gem
          session = main.find { |node| node.file? && node.path.match?(SESSION) && @boot.owners.gem(node) == "debug" }
          return if session.nil? || session.children.empty?

          asking = [session, *session.above].find { |node| asked_by_program?(node) } or return
          told = main.drop(main.index(session) + session.subtree.size)
          told = told.select { |node| node.row.kind == "eval" || node.row.compile_ns.positive? }
          advice("debugger", told.sum { |node| waited_ns(node) }, bound: true, subject: "debug",
                 place: asked_at([asking]), count: told.size)
        end

        # How long the thread did not run. The time until a file's code was compiled has the wait in it, because
        # Pitwall's hook runs after the gem's. Later the file's own code may wait for something else.
        def waited_ns(node)
          waited = [node.own[:wall] - node.own[:cpu], 0].max
          node.row.kind == "eval" ? waited : [waited, node.compile_ns].min
        end

        # What the application, or Bundler.require, loads of a gem. The saving leaves out files that other gems require.
        # others: more lines that ask for files of the gem: [[path, line], …]
        def gems
          asked = main.select { |node| @boot.owners.gem(node) && asked_by_program?(node) }
          asked.group_by { |node| @boot.owners.gem(node) }.filter_map do |name, nodes|
            outermost = Node.outermost(nodes)
            next if outermost.sum { |node| node.total[:wall] } < @least # the saving is at most that

            @boot.uses.gem?(name) ? unused_gem(name, outermost) : used_gem(name, outermost)
          end
        end

        # entry_unused: no file that Bundler.require asks for was used, but other files of the gem were
        def used_gem(name, outermost)
          asked = outermost.select { |node| bundler_asks?(node) }
          advice("gem", @boot.requirers.saving_ns(name, outermost), bound: true, subject: name,
                 place: asked_at(outermost), others: others(name, outermost),
                 files: Node.files(outermost.flat_map(&:subtree)),
                 entry_unused: asked.any? && asked.all? { |node| @boot.uses.used?(node) == false })
        end

        # in_gemfile: Bundler.require loads it, so the Gemfile has the line to change
        def unused_gem(name, outermost)
          saving = @boot.requirers.saving_ns(name, outermost, needed: @boot.uses.used_paths)
          advice("unused_gem", saving, bound: true, subject: name, place: asked_at(outermost),
                 others: others(name, outermost), files: @boot.uses.gems.find { |row| row.name == name }.files,
                 in_gemfile: outermost.all? { |node| bundler_asks?(node) })
        end

        def others(name, outermost) = @boot.requirers.of_gem(name) - [asked_at(outermost)]

        # The place that has these files loaded: the line of a `require`, or the Gemfile if Bundler.require loads them.
        def asked_at(nodes)
          heaviest = nodes.max_by { |node| node.total[:wall] }
          return [gemfile, 0] if gemfile && bundler_asks?(heaviest)

          [heaviest.row.from, heaviest.row.line]
        end

        # The one that Bundler evaluates first; others belong to gems.
        def gemfile
          @gemfile ||= main.find { |node| node.row.kind == "eval" && node.path.match?(GEMFILE) }&.path
        end

        # Files for which a line of the application asks. An eager load has no such line. What Bundler.require asks for
        # is in the advice of its gem.
        def unused_files
          @boot.uses.files_of_used.filter_map do |row|
            node = row.node
            next if node.parent&.row&.kind == "eager_load" || initializer_file?(node) || bundler_asks_for_gem?(node)
            next unless asked_by_program?(node)
            next if node.above.any? { |above| @boot.uses.used?(above) == false }

            advice("unused_file", @boot.uses.saving_ns(node), bound: true, subject: node.path, place: row.place)
          end
        end

        # The gem has a line of advice, so its file needs none. A gem in a folder of the application has no such line.
        def bundler_asks_for_gem?(node) = bundler_asks?(node) && @boot.owners.gem(node)

        # Rails and Bundler themselves are no choice.
        def asked_by_program?(node)
          return false if %w[Rails Bundler RubyGems].include?(@boot.owners.of(node))

          bundler_asks?(node) || @boot.owners.mine?(node.row.from)
        end

        def bundler_asks?(node) = node.parent&.row&.kind == "bundler_require"

        def initializers
          main.select { |node| node.row.kind == "initializer" || initializer_file?(node) }.map do |node|
            advice("initializer", node.own[:wall], bound: true, subject: node.path, place: place_of(node))
          end
        end

        def initializer_file?(node) = node.path.include?("/config/initializers/")

        # Code of the application that runs while its file is loaded.
        def own_code
          mine = main.select { |node| node.code? && @boot.owners.mine?(node.path) && !initializer_file?(node) }
          mine.map do |node|
            advice("own_code", node.own[:wall] - node.compile_ns, bound: true, subject: node.path,
                   place: place_of(node), objects: node.own[:objects])
          end
        end

        def place_of(node) = node.row.path.empty? ? [node.row.from, node.row.line] : [node.row.path, 0]

        # Names the file that has most of these requires. A file of the application is preferred, because its author
        # can change it.
        def repeats
          count, spent = @boot.repeats
          files = main.reject { |node| node.row.path.empty? || node.row.repeats.zero? }.group_by(&:path)
          mine = files.select { |path, found| @boot.owners.mine?(path) && repeats_in(found, :repeat_ns) >= @least }
          worst, nodes = (mine.empty? ? files : mine).max_by { |_, found| repeats_in(found) }
          [advice("repeats", spent, bound: true, place: worst && [worst, 0], count: count,
                  there: nodes && repeats_in(nodes))]
        end

        def repeats_in(nodes, figure = :repeats) = nodes.sum { |node| node.row[figure] }

        def failed
          lost = main.select(&:raised?).reject { |node| node.children.any? }
          by_name = lost.group_by { |node| node.row.name }
          worst = by_name.max_by { |_, nodes| nodes.sum { |node| node.own[:wall] } }
          [advice("failed", lost.sum { |node| node.own[:wall] }, bound: true, subject: worst&.first, count: lost.size)]
        end
      end
    end
  end
end
