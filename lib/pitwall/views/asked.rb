# frozen_string_literal: true

require "pitwall/errors"

module Pitwall
  module Views
    # What a report is asked for: the options of a command line, parsed once. {#check} checks them together.
    class Asked
      # Keys of options that the page has itself, or has no use for.
      NOT_OF_PAGES = %i[thread state labels request gc threshold limit apart idle audit all_frames by sort
                        retained warmup symbol object].freeze
      # Keys of options that Analyse::Report::Query takes as they are.
      OF_QUERY = %i[threshold gc blackbox callers callees symbol object within predict label_key].freeze
      private_constant :OF_QUERY

      # @return [Array<View>] in the order of the command line, the last one is shown; empty: none was asked for
      attr_reader :views
      # @return [String] "text", "json", "markdown" or "html"
      attr_reader :format
      # @return [String, nil] e.g. "cpu"
      attr_reader :weight
      # @return [Integer, nil] rows of a table
      attr_reader :limit

      # @param options [Hash] keys are options' names: {views: […], format: "json", limit: 3}
      #: (Hash[Symbol, untyped]) -> void
      def initialize(options)
        @options = options.compact.freeze
        @views = @options.fetch(:views, []).dup.freeze
        @format = @options.fetch(:format, "text")
        @weight = @options[:weight]
        @limit = @options[:limit]
      end

      # Any other option, by its key; nil: not given.
      #: (Symbol) -> untyped
      def [](key) = @options[key]

      #: () -> bool
      def apart? = @options.fetch(:apart, false)

      # Only the application's frames?
      #: () -> bool
      def only_mine? = Filters.only_mine?(@options)

      # What is filtered. The page filters itself.
      #: (Analyse::Origin) -> Analyse::Filters
      def filters(origin) = Filters.of(html? ? {} : @options, origin)

      # Checks what the page filters first.
      # @raise [UsageError] the recording has no such time, name or origin
      #: (Array[Record::Segment], Analyse::Origin) -> void
      def check_filters_of_page(segments, origin) = Filters.check_page(@options, segments, origin)

      # The filters as one would type them again: " --focus Foo", or "".
      #: () -> String
      def typed_filters = Filters.typed(@options)

      # @param what [String] a view's name
      # @param refused [Array<Symbol>] filters that it does not take
      # @raise [UsageError]
      #: (String, Array[Symbol]) -> void
      def check_filters(what, refused)
        Filters.check(@options, what, refused)
        Filters.check_weight(@options, weight)
      end

      # Every class of string in the recording, instead of a view?
      #: () -> bool
      def audit? = @options.fetch(:audit, false)

      #: () -> bool
      def html? = format == "html"

      # May lines of source stand in the page?
      #: () -> bool
      def source? = @options.fetch(:source, true)

      #: () -> bool
      def redacted? = @options.fetch(:redact, false)

      # What the page shows first.
      #: () -> Hash[String, untyped]
      def start = { "weight" => weight, **Filters.start(@options) }.compact

      # @return [Narrowing] which part of the recording is meant
      #: () -> Narrowing
      def narrowing = Narrowing.new(@options)

      # What Analyse::Report::Query takes. JSON has the whole tree.
      #: () -> Hash[Symbol, untyped]
      def query
        given = @options.slice(*OF_QUERY)
        given[:threshold] ||= 0.0 if format == "json"
        { **given, only_mine: only_mine?, waits: @options.fetch(:idle, false) }
      end

      # JSON holds every view that was asked for, text one, Markdown one that has a table for it.
      # @param terminal [Boolean] would a page be written to a terminal?
      # @raise [UsageError]
      #: (?terminal: bool) -> void
      def check(terminal: false)
        threshold = self[:threshold]
        if threshold && !threshold.between?(0, 100)
          raise UsageError, "--threshold #{threshold}: must be from 0 to 100 percent"
        end
        return check_page(terminal: terminal) if html?
        raise UsageError, "--no-source is for --format html" if self[:source] == false

        check_markdown if format == "markdown"
        check_text if format == "text"
      end

      # The page has all views, and asks for threads, states and ranges itself.
      # @raise [UsageError]
      #: (terminal: bool) -> void
      def check_page(terminal:)
        odd = NOT_OF_PAGES.find { |key| self[key] }
        refused = views.any? ? views.first.option : odd && Views.option_name(odd)
        if refused
          raise UsageError, "--format html: the page has all views and filters of its own: leave out #{refused}"
        elsif terminal
          raise UsageError, "--format html: a terminal shows no page: add --out FILE.html, or take pitwall view"
        end
      end

      private

      def check_markdown
        refused = unfit_for_markdown or return

        whole, others = Views.all.select { |view| view.formats.include?("markdown") }.partition { |view| whole?(view) }
        words = [*whole, *others.drop(1)].map(&:name)
        raise UsageError, "--format markdown holds the #{others.first.name} table, " \
                          "or --view #{words[0..-2].join(", ")} or #{words.last}: " \
                          "leave out #{refused}, or take --format text or json"
      end

      def whole?(view) = view.is_a?(WholeProcess)

      def unfit_for_markdown
        return "--audit" if audit?

        view = views.find { |one| !one.formats.include?("markdown") }
        return view.option if view

        odd = %i[apart threshold].find { |key| self[key] && !(key == :threshold && views.last&.thresholds?) }
        odd && Views.option_name(odd)
      end

      def check_text
        return if views.uniq.size < 2

        raise UsageError, "--format text shows one view: ask for one of #{views.uniq.map(&:option).join(", ")}, " \
                          "or take --format json"
      end
    end
  end
end
