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
      def refused_filters = %i[time focus]

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
        return if growth(subject).any?

        raise UsageError, "#{subject.files.join(" ")}: does not hold what lived over time: record it with " \
                          "pitwall allocations --growth -- CMD (of a program that collects garbage)"
      end

      #: (Subject) -> String
      def text(subject)
        growth = growth(subject)
        drawn(Show::ObjectGrowthText, subject, growth, commands: commands(subject.file, growth.rows),
                                                       **text_options(subject))
      end

      #: (Subject) -> String
      def json(subject)
        drawn(Show::ObjectGrowthJson, subject, growth(subject), warnings: subject.warnings.map(&:to_h))
      end

      #: (Subject) -> String
      def markdown(subject)
        drawn(Show::ObjectGrowthMarkdown, subject, growth(subject), base: subject.application.base,
                                                                    warnings: messages(subject))
      end

      # Commands to type next.
      # @param rows [Array] what grows
      #: (String, Array[untyped]) -> Array[String]
      def commands(file, rows)
        found = ["pitwall report #{file} #{Views.named("allocations").option} --retained"]
        return found if rows.empty?

        found << "pitwall allocations --growth --holders -- CMD" if rows.none?(&:paths)
        found << "pitwall compare #{file} NEW.pit" if file.end_with?(".pit")
        found
      end

      #: (Array[Record::Segment]) -> Array[Tab]
      def tabs(_segments) = [tab("growth", "Growth", place: 120, weighs: false)]

      private

      def growth(subject) = Analyse::ObjectGrowth.new(subject.chosen, warm_up_ns: subject.asked[:warmup])

      def drawn(drawer, subject, growth, **options)
        drawer.new(growth, Analyse::Summary.new(growth.segments), limit: subject.asked.limit,
                                                                  findings: subject.findings_of_process, **options).to_s
      end
    end
  end
end
