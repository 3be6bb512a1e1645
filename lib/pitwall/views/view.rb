# frozen_string_literal: true

require "pitwall/errors"

module Pitwall
  module Views
    # One way to look at a recording: its words for `--help`, its options, what it needs of a recording, and how it
    # draws itself. A view overrides what differs from the defaults here. It keeps nothing of what it draws.
    class View
      # What the page shows of a view. key: in the page's address and program, e.g. "gc" · title: on the tab, e.g. "GC"
      # · place: tabs are sorted by it · weighs: the tab needs a weight, such as wall time · columns, rows: of a tab
      # that is a plain table; nil of a tab that the page's program draws. A column is {"label" => "calls", "number" =>
      # true}.
      # refuses: filters that don't change it.
      Tab = Struct.new(:key, :title, :place, :weighs, :refuses, :columns, :rows, keyword_init: true) do
        #: () -> Hash[String, untyped]
        def to_page
          table = columns ? { "columns" => columns, "rows" => rows } : {}
          { "key" => key, "title" => title, "weighs" => weighs ? true : false, "refuses" => refuses, **table }
        end
      end
      # Of tabs that name no place: before the last one.
      LAST = 1000
      private_constant :LAST

      # As `--view` takes it, e.g. "gc-cost".
      #: () -> String
      def name = raise(NotImplementedError, "#{self.class}#name")

      # As one asks for it: "--view gc-cost", or its own option.
      #: () -> String
      def option = "--view #{name}"

      # Is it asked for with the name of a method (--callers NAME)? Then `--view` does not take it.
      #: () -> bool
      def of_a_name? = false

      # Declares the options that belong to this view.
      # @param options [Hash] takes what was asked for
      #: (OptionParser, Hash[Symbol, untyped]) -> void
      def define_options(_parser, _options) = nil

      # Keys of options that only this view heeds: other views refuse them.
      #: () -> Array[Symbol]
      def own_options = []

      # Keys of options of other views that this view accepts without effect.
      #: () -> Array[Symbol]
      def ignored_options = []

      # Words that its options take where the parser doesn't know them: {"--by" => ["path", …]}
      #: () -> Hash[String, Array[String]]
      def option_words = {}

      # For `--help`, what must have been recorded for this to be the usual view: "samples"; nil: it is asked for only.
      #: () -> String?
      def usual_for = nil

      # Is it shown where no view is asked for?
      # @param weight [String, nil] the weight asked for
      #: (Recorded, String?) -> bool
      def usual?(_recorded, _weight) = false

      # Formats that it draws itself in.
      #: () -> Array[String]
      def formats = %w[text json]

      # Whether the view weighs the call tree. Such a view can weigh objects, too.
      #: () -> bool
      def weighs? = false

      # Does its Markdown leave out what is below --threshold?
      #: () -> bool
      def thresholds? = false

      # Is there something to show where no sample is left?
      #: () -> bool
      def without_samples? = false

      # Can it show one request?
      #: () -> bool
      def of_request? = true

      # Filters (of Filters::KEYS) that can't change what it shows. It refuses these.
      #: () -> Array[Symbol]
      def refused_filters = []

      # @raise [UsageError] the recording or the options lack what it needs
      #: (Subject) -> void
      def check(_subject) = nil

      # The view in the format asked for.
      # @raise [UsageError]
      #: (Subject) -> String
      def draw(subject)
        case subject.asked.format
        when "json" then json(subject)
        when "markdown" then markdown(subject)
        else text(subject)
        end
      end

      # What the page of these segments shows of the view.
      #: (Array[Record::Segment]) -> Array[Tab]
      def tabs(_segments) = []

      private

      # An option that changes nothing would be believed to have changed something.
      # @raise [UsageError]
      def check_options(asked)
        asked.check_filters(name, refused_filters)
        Views.all.reverse.each do |other|
          next if other.equal?(self)

          odd = (other.own_options - ignored_options).find { |key| asked[key] } or next
          raise UsageError, "#{Views.option_name(odd)} is for the view of #{other.name}: " \
                            "add #{other.option}, or leave it out"
        end
      end

      # Adds the view to those asked for.
      def choose(options, **values)
        (options[:views] ||= []) << self
        options.update(values)
      end

      def tab(key, title, place: LAST, weighs: true, **table)
        Tab.new(key: key, title: title, place: place, weighs: weighs, refuses: refused_filters, **table)
      end
    end
  end
end
