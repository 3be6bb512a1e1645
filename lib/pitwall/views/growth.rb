# frozen_string_literal: true

require "pitwall/duration"
require "pitwall/views/whole_process"

module Pitwall
  module Views
    # Places whose objects stay and keep growing.
    class Growth < WholeProcess
      LONGEST = 7 * 86_400 * 1_000_000_000
      private_constant :LONGEST

      #: () -> String
      def name = "growth"

      #: () -> Array[Symbol]
      def own_options = %i[warmup]

      # @param options [Hash] takes :warmup, in ns
      #: (OptionParser, Hash[Symbol, untyped]) -> void
      def define_options(parser, options)
        parser.on("--warmup TIME", "of --view growth: what lives is judged from so long after the start, e.g. 90s " \
                                   "(a quarter of the time)") do |text|
          options[:warmup] = Duration.parse(text, name: "--warmup", range: 0..LONGEST)
        end
      end

      # @raise [UsageError] it was not recorded what lives over time
      #: (Subject) -> void
      def check(subject)
        return if Analyse::ObjectGrowth.new(subject.chosen, warm_up_ns: subject.asked[:warmup]).any?

        raise UsageError, "#{subject.files.join(" ")}: does not hold what lived over time: record it with " \
                          "pitwall allocations --growth -- CMD (of a program that collects garbage)"
      end

      #: (Subject) -> String
      def text(subject)
        drawn(Show::ObjectGrowthText, subject, file: subject.file, **subject.screen.to_h.slice(:width, :palette),
                                               base: subject.application.base, warnings: messages(subject))
      end

      #: (Subject) -> String
      def json(subject) = drawn(Show::ObjectGrowthJson, subject, warnings: subject.warnings.map(&:to_h))

      #: (Subject) -> String
      def markdown(subject)
        drawn(Show::ObjectGrowthMarkdown, subject, base: subject.application.base, warnings: messages(subject))
      end

      #: (Array[Record::Segment]) -> Array[Tab]
      def tabs(_segments) = [tab("growth", "Growth", place: 120, weighs: false)]

      private

      def drawn(drawer, subject, **options)
        growth = Analyse::ObjectGrowth.new(subject.chosen, warm_up_ns: subject.asked[:warmup])
        drawer.new(growth, Analyse::Summary.new(growth.segments), limit: subject.asked.limit,
                                                                  findings: subject.findings_of_process, **options).to_s
      end
    end
  end
end
