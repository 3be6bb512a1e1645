# frozen_string_literal: true

require "pitwall/views/whole_process"

module Pitwall
  module Views
    # What a program loads until it has booted.
    class Boot < WholeProcess
      COLUMNS = [{ "label" => "total ms", "number" => true }, { "label" => "self ms", "number" => true },
                 { "label" => "objects", "number" => true }, { "label" => "kind" }, { "label" => "file" },
                 { "label" => "asked for by" }].freeze
      # Of the column that a recording with uses has.
      USED = { true => "used", false => "never", nil => "" }.freeze
      private_constant :COLUMNS, :USED

      #: () -> String
      def name = "boot"

      #: () -> String
      def usual_for = "a boot"

      #: (Recorded, String?) -> bool
      def usual?(recorded, _weight)
        recorded.segments.any?(&:boot?) && !recorded.sampled? && !recorded.traced? && !recorded.followed?
      end

      #: () -> Array[Symbol]
      def refused_filters = %i[time focus]

      #: () -> Array[Symbol]
      def own_options = %i[heaviest]

      #: () -> Hash[String, Array[String]]
      def option_words = { "--heaviest" => Show::BootWords::WEIGHTS }

      #: (OptionParser, Hash[Symbol, untyped]) -> void
      def define_options(parser, options)
        weights = Show::BootWords::WEIGHTS
        parser.on("--heaviest FIGURE", weights, "of --view boot: the tree by #{weights.join(", ")} (wall)") do |name|
          options[:heaviest] = name.to_sym
        end
      end

      # @raise [UsageError] loads were not watched
      #: (Subject) -> void
      def check(subject)
        boot = boot(subject)
        unless boot.any?
          raise UsageError, "#{subject.files.join(" ")}: does not hold what was loaded. Either it was not recorded " \
                            "with pitwall boot -- CMD, or the program was killed before its loads were written " \
                            "(once a second), or it went to the background (start it in the foreground)"
        end
        return unless subject.asked[:heaviest] == :calls && !boot.calls?

        raise UsageError, "--heaviest calls: #{subject.files.join(" ")} has no file-system calls: record them with " \
                          "pitwall boot --calls -- CMD"
      end

      #: (Subject) -> String
      def text(subject)
        drawn(Show::BootText, subject, weight: weight(subject), commands: commands(subject.file),
                                       **text_options(subject))
      end

      #: (Subject) -> String
      def json(subject) = drawn(Show::BootJson, subject, hints: Hints, warnings: subject.warnings.map(&:to_h))

      #: (Subject) -> String
      def markdown(subject)
        drawn(Show::BootMarkdown, subject, weight: weight(subject), hints: Hints, base: subject.application.base,
                                           warnings: messages(subject))
      end

      # Commands to type next.
      #: (String) -> Array[String]
      def commands(file)
        ["pitwall report #{file} #{option} --heaviest objects", "pitwall boot --fail-if \"boot > 2s\" -- CMD",
         "pitwall compare #{file} AFTER.pit"]
      end

      #: (Array[Record::Segment]) -> Array[Tab]
      def tabs(segments)
        boot = Analyse::Boot.new(segments, origin: Analyse::Origin.new)
        return [] unless boot.any?

        known, cached = boot.uses.known?, boot.caches.any?
        rows = boot.nodes.map do |node|
          [ms(node.total[:wall]), ms(node.own[:wall]), node.own[:objects], Show::BootWords.kind(node, boot), node.path,
           node.row.from.empty? ? "" : "#{node.row.from}:#{node.row.line}", *(USED[boot.uses.used?(node)] if known),
           *(node.row.cache if cached)]
        end
        columns = COLUMNS + [("used" if known), ("cache" if cached)].compact.map { |label| { "label" => label } }
        [tab("boot", "Boot", place: 5, weighs: false, columns: columns, rows: rows)]
      end

      # @api private
      #: (Subject) -> Analyse::Boot
      def boot(subject) = Analyse::Boot.new(subject.chosen, origin: subject.application.origin)

      private

      def weight(subject) = subject.asked[:heaviest] || :wall

      def ms(nanoseconds) = nanoseconds.fdiv(1_000_000).round(2)

      def drawn(drawer, subject, **options)
        boot = boot(subject)
        drawer.new(boot, Analyse::Summary.new(boot.segments), limit: subject.asked.limit, **options).to_s
      end
    end
  end
end
