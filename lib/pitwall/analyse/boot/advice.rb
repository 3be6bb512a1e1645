# frozen_string_literal: true

module Pitwall
  module Analyse
    class Boot
      # What to do about a boot's time, the largest predicted saving first.
      #
      # kind:      "compile_cache", "heap", "gem", "file", "initializer", "repeats", "failed", "own_code"
      # saving_ns: predicted, an upper bound where `bound` is true
      # subject:   the gem, file or initializer; nil: the whole boot
      # place:     [path, line] that asks for it; nil: none
      # figures:   numbers for the sentence
      Advice = Struct.new(:kind, :saving_ns, :bound, :subject, :place, :figures, keyword_init: true)

      # Finds advice in a boot.
      class Advising
        # Reading compiled code takes about this part of the time to find, read and compile the source (bootsnap's
        # cache, doc/boot.md).
        CACHED = 0.4
        # Less than this part of the boot is not worth a line.
        LEAST = 0.01
        MOST = 12
        private_constant :CACHED, :LEAST, :MOST

        #: (Boot) -> void
        def initialize(boot)
          @boot = boot
          @least = boot.wall_ns * LEAST
        end

        #: () -> Array[Advice]
        def all
          found = [*compile_cache, *heap, *gems, *initializers, *own_code, *repeats, *failed]
          found.select { |advice| advice.saving_ns >= @least }.sort_by { |advice| -advice.saving_ns }.first(MOST)
        end

        private

        def advice(kind, saving, bound: false, subject: nil, place: nil, **figures)
          Advice.new(kind: kind, saving_ns: saving.round, bound: bound, subject: subject, place: place,
                     figures: figures)
        end

        def main = @main ||= @boot.nodes.select { |node| @boot.main?(node) }

        def compile_cache
          return [] if @boot.bootsnap?

          sources = main.select { |node| node.row.compile_ns.positive? }
          spent = sources.sum(&:compile_ns)
          [advice("compile_cache", spent * (1 - CACHED), files: sources.size, ns: spent)]
        end

        # A heap that is large enough from the start needs no collection.
        def heap
          figures = @boot.figures
          [advice("heap", figures[:gc], bound: true, runs: figures[:gc_runs], slots: @boot.heap_slots)]
        end

        # What a line of the application, or Bundler.require, loads of a gem.
        def gems
          asked = main.select { |node| @boot.owners.gem(node) && asked_by_program?(node) }
          asked.group_by { |node| @boot.owners.gem(node) }.map do |name, nodes|
            inside = nodes.to_h { |node| [node.row.id, node] }
            outermost = nodes.reject { |node| node.above.any? { |above| inside[above.row.id].equal?(above) } }
            heaviest = outermost.max_by { |node| node.total[:wall] }
            advice("gem", outermost.sum { |node| node.total[:wall] }, bound: true, subject: name,
                   place: [heaviest.row.from, heaviest.row.line], files: outermost.sum { |node| files_below(node) })
          end
        end

        # Rails and Bundler themselves are no choice.
        def asked_by_program?(node)
          return false if %w[Rails Bundler RubyGems].include?(@boot.owners.of(node))

          node.parent&.row&.kind == "bundler_require" || @boot.owners.mine?(node.row.from)
        end

        def files_below(node) = 1 + node.children.sum { |child| files_below(child) }

        def initializers
          main.select { |node| node.row.kind == "initializer" || initializer_file?(node) }.map do |node|
            advice("initializer", node.own[:wall], bound: true, subject: node.path, place: place_of(node))
          end
        end

        def initializer_file?(node) = node.path.include?("/config/initializers/")

        # Code of the application that runs while its file is loaded.
        def own_code
          mine = main.select { |node| node.file? && @boot.owners.mine?(node.path) && !initializer_file?(node) }
          mine.map do |node|
            advice("own_code", node.own[:wall] - node.compile_ns, bound: true, subject: node.path,
                   place: place_of(node), objects: node.own[:objects])
          end
        end

        def place_of(node) = node.row.path.empty? ? [node.row.from, node.row.line] : [node.row.path, 0]

        def repeats
          count, spent = @boot.repeats
          worst = main.max_by { |node| node.row.repeat_ns }
          [advice("repeats", spent, bound: true, place: worst && [worst.path, 0], count: count)]
        end

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
