# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/errors"
require "pitwall/show"
require "pitwall/views/view"
require "pitwall/views/report_view"
require "pitwall/views/whole_process"
require "pitwall/views/asked"
require "pitwall/views/drawing"
require "pitwall/views/filters"
require "pitwall/views/hints"
require "pitwall/views/narrowing"
require "pitwall/views/recorded"
require "pitwall/views/subject"

module Pitwall
  # The ways to look at a recording, one object a view (views/NAME.rb). `--help`, completion, the checks of options,
  # text, JSON, Markdown and the page read this list. Nothing else lists views.
  module Views
    # In the order of `--help`.
    FILES = %w[flat calls tree bottom_up callers callees graph lines threads labels requests queries tests gc gc_cost
               allocations growth syscalls caches
               boot].freeze
    # Says how it was recorded. It belongs to no view and is the last tab.
    ABOUT = View::Tab.new(key: "about", title: "About", weighs: false)
    # Options whose key is not their name.
    OPTION_NAMES = { labels: "label", source: "no-source" }.freeze
    private_constant :FILES, :ABOUT, :OPTION_NAMES

    @all = []

    class << self
      # @return [Array<View>]
      #: () -> Array[View]
      def all = @all.dup

      # Adds a view to the end of the list.
      # @raise [ArgumentError] there is a view of that name
      #: (View) -> View
      def add(view)
        raise ArgumentError, "there is a view #{view.name}" if @all.any? { |other| other.name == view.name }

        @all << view
        view
      end

      #: (View) -> void
      def remove(view) = @all.delete(view)

      # "gc-cost" → the view
      # @raise [KeyError] there is none
      #: (String) -> View
      def named(name) = @all.find { |view| view.name == name } || raise(KeyError, "no view #{name}")

      # What `--view` takes. A view that needs a name has an option of its own.
      #: () -> Array[String]
      def words = @all.reject(&:of_a_name?).map(&:name)

      # "flat, calls, … (by what was recorded: samples flat, …)"
      #: () -> String
      def help
        usual = @all.select(&:usual_for).map { |view| "#{view.usual_for} #{view.name}" }
        "#{words.join(", ")} (by what was recorded: #{usual.join(", ")})"
      end

      # The view that `--view NAME` asks for.
      # @raise [UsageError]
      #: (String) -> View
      def asked_for(name)
        view = @all.find { |one| one.name == name }
        raise UsageError, "--view #{name}: it takes #{words.join(", ")}" if view.nil?
        raise UsageError, "--view #{name}: use --#{name} NAME" if view.of_a_name?

        view
      end

      # The view of a recording where none is asked for.
      # @param weight [String, nil] the weight asked for
      #: (Recorded, String?) -> View
      def usual(recorded, weight) = @all.find { |view| view.usual?(recorded, weight) } || @all.first

      # Words that the views' options take where the parser doesn't know them, for completion.
      #: () -> Hash[String, Array[String]]
      def option_words = { "--view" => words }.merge(*@all.map(&:option_words))

      # Tabs of the page of these segments, from left to right.
      #: (Array[Record::Segment]) -> Array[Hash[String, untyped]]
      def tabs(segments)
        tabs = @all.flat_map { |view| view.tabs(segments) }
        sorted = tabs.each_with_index.sort_by { |tab, at| [tab.place, at] }.map(&:first)
        [*sorted, ABOUT].map(&:to_page)
      end

      # An option as one types it: :all_frames → "--all-frames"
      #: (Symbol) -> String
      def option_name(key) = "--#{OPTION_NAMES.fetch(key) { key.to_s.tr("_", "-") }}"
    end

    FILES.each do |file|
      require "pitwall/views/#{file}"
      add(const_get(file.split("_").map { |word| word == "gc" ? "GC" : word.capitalize }.join).new)
    end
  end
end
