# frozen_string_literal: true

require "pitwall/show/terminal/figures"
require "pitwall/show/terminal/markdown"
require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # The last part of a measurement's report: warnings with hints, settings, host, and the command that repeats the
    # measurement.
    class Provenance
      LABEL = 8 # columns of a label, at least
      # A word of a command line, with a shell's quoting.
      WORD = /(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+/m.freeze
      READINGS = %w[load_before load_after others steal idle].freeze
      INTERRUPTED = "Interrupted: this is what had been measured until then"
      private_constant :LABEL, :WORD, :READINGS, :INTERRUPTED

      class << self
        # The host's facts: "2 cores, AMD EPYC 7763, kernel 6.1.0, 8.00 GiB".
        #: (Hash[String, untyped]?) -> String
        def host(host)
          known = host.to_h.transform_keys(&:to_s).compact
          parts = [known["cores"] && Units.things(known["cores"], "core"), known["cpu"],
                   known["kernel"] && "kernel #{known["kernel"]}",
                   known["memory_bytes"]&.positive? ? Units.bytes(known["memory_bytes"]) : nil]
          rest = known.except("cores", "cpu", "kernel", "memory_bytes", *READINGS).map do |name, value|
            "#{name.tr("_", " ")} #{scalar(value)}"
          end
          Text.safe((parts.compact.map(&:to_s) + rest + readings(known)).join(", "))
        end

        # The settings of a measurement in words: ["margin 1%", "alpha 1%", "budget 30 s"].
        #: (Hash[String, untyped]?) -> Array[String]
        def settings(settings)
          given = settings.to_h.reject do |name, value|
            value.nil? || value == false || value == "" || value == [] || name.to_s == "interrupted"
          end
          given.map { |name, value| Text.safe(setting(name.to_s, value)) }
        end

        # The losses of a measurement in words: ["failed blocks: 1"]. Empty without losses.
        #: (Hash[String, Integer]?) -> Array[String]
        def losses(losses)
          lost = losses.to_h.select { |_, count| count.is_a?(Numeric) && count.positive? }
          lost.map { |name, count| "#{name.to_s.tr("_", " ")}: #{Units.count(count)}" }
        end

        # A command line with control characters escaped. Line breaks stay, as quoted words may contain them.
        #: (String?) -> String
        def safe(command) = command.to_s.lines.map { |line| Text.safe(line.chomp) }.join("\n")

        # A report's warnings as quoted paragraphs of Markdown.
        #: (Analyse::ComparisonReport | Analyse::BenchReport) -> Array[String]
        def quoted(report)
          texts = report.warnings.to_a.map do |warning|
            "#{about(warning)}#{" (#{warning.hint})" unless warning.hint.to_s.empty?}"
          end
          lines = [*interrupted(report), *texts].map { |text| "> #{Markdown.text(text)}" }
          lines.flat_map { |line| [line, ">"] }[0..-2].to_a
        end

        # A command line as a block of Markdown.
        #: (String?) -> Array[String]
        def block(command)
          command.to_s.empty? ? [] : Markdown.block(safe(command).lines(chomp: true), language: "sh")
        end

        # A sentence when Ctrl-C ended the measurement; else nil.
        #: (Analyse::ComparisonReport | Analyse::BenchReport) -> String?
        def interrupted(report) = report.settings.to_h["interrupted"] ? INTERRUPTED : nil

        # A warning's text, with its subject in front unless the text contains the subject.
        #: (Analyse::Warning) -> String
        def about(warning)
          subject = warning.subject.to_s
          subject.empty? || warning.text.include?(subject) ? warning.text : "#{subject}: #{warning.text}"
        end

        private

        # The machine's load during the measurement, by other programs and virtual machines.
        def readings(known)
          load = [known["load_before"], known["load_after"]].compact.map { |number| format("%.1f", number) }
          [("load #{load.uniq.join(" → ")}" if load.any?),
           ("others took #{Figures.rough(known["others"])} of its CPU time" if known["others"]),
           ("#{Figures.rough(known["steal"])} stolen" if known["steal"]&.positive?)].compact
        end

        def setting(name, value)
          words = name.tr("_", " ")
          if name.end_with?("_ns") && value.is_a?(Numeric)
            return "#{words.delete_suffix(" ns")} #{Units.duration(value)}"
          end

          return "#{words.delete_suffix(" s")} #{scalar(value)} s" if name.end_with?("_s") && value.is_a?(Numeric)
          return "#{words} #{Figures.share(value)}" if %w[alpha margin level].include?(name) && value.is_a?(Numeric)
          return words if value == true

          "#{words} #{scalar(value)}"
        end

        def scalar(value)
          case value
          when Array then value.map { |part| scalar(part) }.join(" ")
          when Hash then value.map { |key, part| "#{key}=#{scalar(part)}" }.join(" ")
          when Float then format("%.4g", value)
          else value.to_s
          end
        end
      end

      #: (width: Integer, palette: untyped) -> void
      def initialize(width:, palette:)
        @width = width
        @palette = palette
      end

      # All warnings, each with its hint on lines of its own.
      #: (Analyse::ComparisonReport | Analyse::BenchReport) -> Array[String]
      def warnings(report)
        first = Provenance.interrupted(report).then do |text|
          text ? Text.wrap("! #{text}", @width).map { |line| @palette.yellow(line) } : []
        end
        first + report.warnings.to_a.flat_map do |warning|
          text = Text.wrap("! #{Provenance.about(warning)}", @width).map { |line| @palette.yellow(line) }
          hint = warning.hint.to_s.empty? ? [] : Text.wrap(warning.hint, @width - 2, indent: "")
          text + hint.map { |line| @palette.dim("  #{line}") }
        end
      end

      # The first warning of each kind, with the number of further ones.
      #: (Analyse::ComparisonReport | Analyse::BenchReport) -> Array[String]
      def warnings_together(report)
        texts = report.warnings.to_a.group_by(&:kind).map do |_, group|
          first = group.first
          more = " (#{group.size - 1} more like it)" if group.size > 1
          "! #{Provenance.about(first)}#{more}#{"; #{first.hint}" unless first.hint.to_s.empty?}"
        end
        [*(Provenance.interrupted(report)&.then { |text| "! #{text}" }), *texts].flat_map do |text|
          Text.wrap(text, @width).map { |line| @palette.yellow(line) }
        end
      end

      # Lines "LABEL  TEXT". A long text is wrapped in its own column.
      #: (Hash[String, String]) -> Array[String]
      def facts(facts)
        label = [facts.keys.map { |name| Text.width(Text.safe(name)) }.max.to_i, LABEL].max.clamp(0, @width / 4)
        facts.reject { |_, text| text.empty? }.flat_map do |name, text|
          lines = Text.wrap(text, @width - label - 2, indent: "")
          heads = [Text.shorten_right(name, label)] + [""] * lines.size
          lines.zip(heads).map { |line, head| @palette.dim("#{Text.left(head, label)}  #{line}".rstrip) }
        end
      end

      # A command line, wrapped at words. Lines end in a backslash, so that the command can be pasted into a shell.
      #: (String?) -> Array[String]
      def command(command)
        words = Provenance.safe(command).scan(WORD)
        return [] if words.empty?

        lines = [+words.shift]
        words.each do |word|
          if fits?(lines.last, word)
            lines.last << " " << word
          else
            lines << +"  #{word}"
          end
        end
        lines.each_with_index.map { |line, at| at == lines.size - 1 ? line : "#{line} \\" }
      end

      private

      def fits?(line, word) = !word.include?("\n") && Text.width(line.lines.last) + 1 + Text.width(word) <= @width - 2
    end
  end
end
