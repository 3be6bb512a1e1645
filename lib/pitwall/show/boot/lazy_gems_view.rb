# frozen_string_literal: true

require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # The output of `pitwall boot cache lazy`: which gems wait until they are used, and why other gems can't wait.
    class LazyGemsView
      CONSTANTS = 3 # of a gem that are named
      REASONS = 2 # of a gem that are named
      NAME = 28 # columns of a gem's name at most
      private_constant :CONSTANTS, :REASONS, :NAME

      # @param found [CLI::LazyGemsSearch::Found]
      #: (untyped) -> void
      def initialize(found)
        @found = found
      end

      #: (width: Integer) -> Array[String]
      def lines(width:)
        @width = width
        [*section(waiting_title, @found.waiting) { |entry| constants(entry) },
         *(section("used by this boot, so loaded at once", @found.used) { "" } if @found.used.any?),
         *(section("loaded at once, because loading it", @found.heavy) { |entry| reasons(entry) } if @found.heavy.any?),
         *Text.wrap(ending, width)]
      end

      private

      def waiting_title
        count = @found.waiting.size
        all = count + @found.used.size + @found.loaded.size
        return "Bundler.require loads no gem in this boot, so no gem can wait" if all.zero?

        "#{count} of #{all} gems wait until they are used: #{Units.duration(@found.waiting.sum(&:ns))} of this boot"
      end

      # @yieldreturn what to say of a gem
      def section(title, entries)
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
        @name_width ||= begin
          shown = [*@found.waiting, *@found.used, *@found.heavy]
          [shown.map { |entry| entry.name.size }.max.to_i, NAME, @width / 3].min
        end
      end

      def constants(entry) = few(entry.constant_names, CONSTANTS, ", ")

      def reasons(entry) = few(entry.changes, REASONS, "; ")

      def few(texts, most, between)
        more = texts.size - most
        [*texts.first(most).map { |text| Text.safe(text) }, *("#{more} more" if more.positive?)].join(between)
      end

      def ending
        return "no list was written" if @found.waiting.empty?

        "#{@found.path}: boots with this Gemfile, lockfile and RAILS_ENV use it. PITWALL_FASTBOOT_LAZY=off, or " \
          "pitwall boot cache clear, ends that."
      end
    end
  end
end
