# frozen_string_literal: true

require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Which gems of a program wait until they are used, and why the others don't: the output of
    # `pitwall boot cache lazy`.
    class LazyGemsView
      REASONS = 2 # that are named of each gem
      NAME = 28 # columns of a gem's name at most
      private_constant :REASONS, :NAME

      # @param found [CLI::LazyGemsSearch::Found]
      #: (untyped) -> void
      def initialize(found)
        @found = found
      end

      #: (width: Integer) -> Array[String]
      def lines(width:)
        @width = width
        [*section(waiting_title, @found.waiting) { |entry| constants(entry) },
         *section("used by this boot, so loaded at once", @found.used) { "" },
         *section("loaded at once, because loading it", @found.heavy) { |entry| reasons(entry) },
         *Text.wrap(ending, width)]
      end

      private

      def waiting_title
        count = @found.waiting.size
        all = count + @found.used.size + @found.loaded.size
        "#{count} of #{all} gems wait until they are used: #{Units.duration(@found.waiting.sum(&:ns))} of this boot"
      end

      # @yieldreturn what to say of a gem
      def section(title, entries)
        return title == waiting_title ? [title, ""] : [] if entries.empty?

        rows = entries.sort_by { |entry| -entry.ns }.flat_map { |entry| row(entry, yield(entry)) }
        [*Text.wrap(title, @width), *rows, ""]
      end

      def row(entry, text)
        name = Text.safe(entry.name)
        start = "#{Text.right(Units.duration(entry.ns), 8)}  "
        place = [name_width, @width - start.size].min
        first, *others = Text.wrap(text, [@width - start.size - place - 2, 20].max)
        indent = " " * (start.size + place + 2)
        head = start + Text.left(Text.shorten(name, place), place)
        ["#{head}  #{first}".rstrip, *others.map { |line| indent + line }]
      end

      def name_width
        shown = [*@found.waiting, *@found.used, *@found.heavy]
        [shown.map { |entry| entry.name.size }.max.to_i, NAME, @width / 3].min
      end

      def constants(entry)
        names = entry.constants.map { |holder, name| holder == "Object" ? name : "#{holder}::#{name}" }
        few(names.map { |name| Text.safe(name) }, REASONS + 1)
      end

      def reasons(entry) = few(entry.changes.map { |change| Text.safe(change) }, REASONS, "; ")

      def few(texts, most, between = ", ")
        more = texts.size - most
        [*texts.first(most), *("#{more} more" if more.positive?)].join(between)
      end

      def ending
        return "no list was written" if @found.waiting.empty?

        "#{@found.path}: boots with this Gemfile, lockfile and RAILS_ENV use it. PITWALL_FASTBOOT_LAZY=off, or " \
          "pitwall boot cache clear, ends that."
      end
    end
  end
end
