# frozen_string_literal: true

require "shellwords"
require "pitwall/analyse"
require "pitwall/cli/support/duration"
require "pitwall/cli/recording/project"
require "pitwall/show"

module Pitwall
  module CLI
    # The view of growing objects, as `allocations --growth` and `report --view growth` show it.
    module ObjectGrowthView
      LONGEST = 7 * 86_400 * 1_000_000_000
      private_constant :LONGEST

      module_function

      # @param options [Hash] takes :warmup
      #: (OptionParser, Hash[Symbol, untyped]) -> void
      def define_options(parser, options)
        parser.on("--warmup TIME", "of --view growth: what lives is judged from so long after the start, e.g. 90s (a quarter of the time)") do |text|
          options[:warmup] = Duration.parse(text, name: "--warmup", range: 0..LONGEST)
        end
      end

      # @param options [Hash] :warmup, :limit, :format
      # @raise [UsageError] when it was not recorded what lives over time
      #: (Array[Record::Segment], Array[Record::Warning], Hash[Symbol, untyped], files: Array[String], ?findings: Array[untyped], ?width: Integer, ?palette: untyped) -> String
      def render(segments, warnings, options, files:, findings: [], width: Command::PIPE_WIDTH, palette: Show::Plain)
        growth = Analyse::ObjectGrowth.new(segments, warm_up_ns: options[:warmup])
        unless growth.any?
          raise UsageError, "#{files.join(" ")}: does not hold what lived over time: record it with pitwall allocations --growth -- CMD (of a program that collects garbage)"
        end

        summary = Analyse::Summary.new(growth.segments)
        shared = { limit: options[:limit], findings: findings }
        texts = warnings.map(&:message)
        case options[:format]
        when "json" then Show::ObjectGrowthJson.new(growth, summary, **shared, warnings: warnings.map(&:to_h)).to_s
        when "markdown" then Show::ObjectGrowthMarkdown.new(growth, summary, **shared, base: Dir.pwd, warnings: texts).to_s
        else
          Show::ObjectGrowthText.new(growth, summary, **shared, file: Project.typed(files), base: Dir.pwd, warnings: texts, width: width, palette: palette).to_s
        end
      end
    end
    private_constant :ObjectGrowthView
  end
end
