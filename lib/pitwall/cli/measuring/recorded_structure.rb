# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/cli/recording/recording_options"
require "pitwall/errors"
require "pitwall/show"

module Pitwall
  module CLI
    # The part of `compare` that compares the call paths of recordings: `--view structure`, and the page.
    module RecordedStructure
      VIEWS = %w[methods structure].freeze
      private_constant :VIEWS

      private

      def define_structure_options(parser)
        parser.on("--view VIEW", VIEWS, "methods: which changed (default); structure: which call paths only one side " \
                                        "has, or calls more often") { |view| @options[:view] = view }
        limit = "with --view structure: rows of all lists together (default: one screen)"
        parser.on("--limit N", Integer, limit) do |n|
          @options[:limit] = positive("--limit", n)
        end
        parser.on("--blackbox NAME", "fold everything below a method (or a path, if it has a slash; a gem; or " \
                                     "@SET) into it; repeatable") do |name|
          RecordingOptions.add(@options, :blackbox, name)
        end
      end

      def structure? = @options[:view] == "structure"

      # @raise [UsageError]
      def check_structure_options
        if structure? && @options[:predicted]
          raise UsageError, "--view structure: compares call paths; --predicted checks a sum: leave one of them out"
        end

        return if @options[:limit].nil? || structure? || @options[:format] == "html"

        raise UsageError, "--limit: is for call paths: add --view structure"
      end

      # @raise [UsageError]
      def refuse_structure_of_objects(file)
        return unless structure?

        raise UsageError, "--view structure: #{file} holds objects and no times or calls: leave it out"
      end

      # @return [Integer] the exit status
      def compare_structure(files, segments)
        @warnings = recording_warnings(files, segments)
        view = structure(files, segments)
        publish(structure_report(files, view))
        view.reason ? Status::CANNOT_MEASURE : Status::OK
      end

      def structure(files, segments)
        a, b = sides_of(segments)
        change = Analyse::StructureChange.compare(a: a, b: b, weight: @options.fetch(:weight, :wall),
                                                  labels: @options[:labels],
                                                  blackbox: @options.fetch(:blackbox, []))
        Show::StructureView.new(change, base: files[0], side: files[1], warnings: @warnings,
                                        location: Show::Location.new(Dir.pwd))
      end

      def structure_report(files, view)
        case @options[:format]
        when "json" then structure_json(view)
        when "html" then Show::MeasuredPage.of_parts([], base: files[0], side: files[1], structure: view)
        else structure_text(view)
        end
      end

      def structure_json(view)
        object = { "schema" => "pitwall/compare-1", "results" => [], "warnings" => @warnings, "why" => [],
                   "structure" => view.json }
        object["filters"] = filters_json unless filter_words.empty?
        JSON.generate(object)
      end

      def structure_text(view)
        markdown = @options[:format] == "markdown"
        options = rendering.slice(:width, :palette)
        options[:palette] = Show::Plain if markdown
        lines = filter_words.empty? ? [] : Show::Text.wrap("compared: #{filter_words}", options[:width]) + [""]
        lines += view.lines(**options, limit: @options[:limit])
        (markdown ? ["```", *lines, "```"] : lines).join("\n")
      end
    end
  end
end
