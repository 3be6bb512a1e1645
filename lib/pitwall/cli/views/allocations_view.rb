# frozen_string_literal: true

require "shellwords"
require "pitwall/analyse"
require "pitwall/cli/page/page"
require "pitwall/cli/recording/project"
require "pitwall/record"
require "pitwall/show"

module Pitwall
  module CLI
    # The view of allocations, as `allocations` and `report --view allocations` show it: its options, and the report as a string.
    module AllocationsView
      KEYS = %w[path line class type method stack].freeze
      SORTS = { "objects" => :count, "count" => :count, "bytes" => :bytes, "old" => :old, "retained" => :retained, "retained_bytes" => :retained_bytes, "freed" => :freed,
                "age" => :total_age, "total_age" => :total_age, "max_age" => :max_age, "min_age" => :min_age, "slot_bytes" => :slot_bytes,
                "gc" => :gc_ns, "gc_ns" => :gc_ns }.freeze
      private_constant :KEYS, :SORTS

      module_function

      # @param options [Hash] takes :by, :sort, :retained
      #: (OptionParser, Hash[Symbol, untyped]) -> void
      def define_options(parser, options)
        parser.on("--by KEYS", Array, "a row for each #{KEYS.join(", ")} (path,line,class; with --stacks also stack; a line comes with its path)") { |words| options[:by] = keys(words) }
        parser.on("--sort COUNTER", SORTS, "objects, bytes, old, retained, retained_bytes, freed, age, max_age, gc (objects; with --retained: retained_bytes)") { |counter| options[:sort] = counter }
        parser.on("--retained", "only what still lived at the end, by its bytes") { options[:retained] = true }
      end

      # @api private
      #: () -> Hash[String, Array[String]]
      def option_words = { "--by" => KEYS }

      # @raise [UsageError] a key there isn't
      #: (Array[String]) -> Array[Symbol]
      def keys(words)
        wrong = words - KEYS
        raise UsageError, "--by #{words.join(",")}: it takes #{KEYS.join(", ")}, one or more with commas between" if wrong.any? || words.empty?

        words = ["path", *words] if words.include?("line") && !words.include?("path")
        words.map(&:to_sym).uniq
      end

      # "1/100" → 100
      # @raise [UsageError] it is no such fraction
      #: (String, String) -> Integer
      def one_in(text, option)
        n = text[%r{\A1/([\d_]+)\z}, 1]&.delete("_").to_i
        n.between?(1, 1_000_000_000) ? n : raise(UsageError, "#{option} #{text}: write 1/N, such as 1/100")
      end

      # @param options [Hash] :by, :sort, :retained, :limit, :format
      # @raise [UsageError] when nothing of the recording followed objects
      #: (Array[Record::Segment], Array[Record::Warning], Hash[Symbol, untyped], files: Array[String], ?findings: Array[untyped], ?width: Integer, ?palette: untyped) -> String
      def render(segments, warnings, options, files:, findings: [], width: Command::PIPE_WIDTH, palette: Show::Plain)
        allocations = Analyse::Allocations.new(segments)
        raise UsageError, "#{files.join(" ")}: holds no allocations: record them with pitwall allocations -- CMD" unless allocations.any?

        return Page.render(segments, warnings, findings: findings, origin: Project.origin) if options[:format] == "html"

        by = options[:by] || (options[:stacks] ? %i[path line class stack] : %i[path line class])
        view = { by: by, sort: options.fetch(:sort) { usual_sort(allocations, options) }, retained: options.fetch(:retained, false), limit: options[:limit], findings: findings }
        summary = Analyse::Summary.new(allocations.segments)
        texts = warnings.map(&:message)
        case options[:format]
        when "json" then Show::AllocationsJson.new(allocations, summary, **view, warnings: warnings.map(&:to_h)).to_s
        when "markdown" then Show::AllocationsMarkdown.new(allocations, summary, **view, base: Dir.pwd, warnings: texts).to_s
        else
          file = files.map { |name| Shellwords.escape(name.delete_prefix("#{Dir.pwd}/")) }.join(" ")
          Show::AllocationsText.new(allocations, summary, **view, file: file, base: Dir.pwd, warnings: texts, width: width, palette: palette).to_s
        end
      end

      # Recordings of older versions don't tell the bytes of what was retained.
      def usual_sort(allocations, options)
        return :count unless options[:retained]

        allocations.retained_bytes? ? :retained_bytes : :retained
      end
      private_class_method :usual_sort
    end
    private_constant :AllocationsView
  end
end
