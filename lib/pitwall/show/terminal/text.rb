# frozen_string_literal: true

module Pitwall
  module Show
    # Fits text into columns, and removes control characters: names come from recordings, and a control sequence in a
    # name would be a command to the terminal.
    module Text
      ELLIPSIS = "…"
      # The last part of a method's name with its separator: "#sum", ".new", "::Cart".
      LAST_PART = /(?:[#.]|::)[^#.:]*\z/.freeze
      # Control characters, and characters that change the direction of text.
      UNSAFE = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/.freeze
      # Characters of one column. Nearly all names consist of these, so unicode-display_width is rarely loaded.
      NARROW = /\A[\u0020-\u007e\u00a1-\u00ac\u00ae-\u02ff…│├└─↳]*\z/.freeze
      private_constant :LAST_PART, :UNSAFE, :NARROW

      module_function

      # The text with control characters escaped: "a\e[2J" → "a\\e[2J".
      #: (String) -> String
      def safe(text) = text.match?(UNSAFE) ? text.gsub(UNSAFE) { |char| char.dump[1..-2] } : text

      # Any bytes, e.g. typed text or a file's name, as one safe line: "\xFFa\n" → "?a\\n".
      #: (String) -> String
      def line(text)
        text = text.dup.force_encoding(Encoding::UTF_8) if text.encoding == Encoding::BINARY
        safe(text.scrub("?"))
      end

      # Number of terminal columns that the text takes. A Chinese character takes two.
      #: (String) -> Integer
      def width(text)
        return text.size if text.ascii_only? || text.match?(NARROW)

        require "unicode/display_width"
        Unicode::DisplayWidth.of(text)
      end

      # Left-aligned text: padded to a number of columns.
      #: (String, Integer) -> String
      def left(text, columns) = text + " " * [columns - width(text), 0].max

      # Right-aligned text: padded to a number of columns.
      #: (String, Integer) -> String
      def right(text, columns) = " " * [columns - width(text), 0].max + text

      # Shortens a method's name in the middle. The name's last part stays:
      # "Shop::Checkout::Cart#sum" → "Shop::C…t#sum".
      #: (String, Integer) -> String
      def shorten(name, columns)
        name = safe(name)
        return name if width(name) <= columns
        return ELLIPSIS if columns <= 1

        cut_middle(name, columns, [width(name[LAST_PART] || ""), columns * 3 / 5].max)
      end

      # Shortens other text in the middle: "route=api/v1/orders#show, tenant=acme" → "route=api/v… tenant=acme".
      #: (String, Numeric) -> String
      def shorten_middle(text, columns)
        text = safe(text)
        return text if width(text) <= columns
        return ELLIPSIS if columns <= 1

        cut_middle(text, columns, columns / 2)
      end

      # Removes the middle of a text.
      # @param keep [Integer] columns of the text's end that stay
      # @api private
      #: (String, Integer, Integer) -> String
      def cut_middle(text, columns, keep)
        keep = [keep, columns - 1].min
        head(text, columns - 1 - keep) + ELLIPSIS + tail(text, keep)
      end

      # Shortens from the left: "/srv/app/lib/a.rb:3" → "…/lib/a.rb:3".
      #: (String, Integer) -> String
      def shorten_left(text, columns)
        text = safe(text)
        return text if width(text) <= columns
        return ELLIPSIS if columns <= 1

        ELLIPSIS + tail(text, columns - 1)
      end

      # Shortens from the right, e.g. a line of source: "total = items.sum" → "total = it…".
      #: (String, Integer) -> String
      def shorten_right(text, columns)
        text = safe(text)
        return text if width(text) <= columns

        head(text, columns - 1) + ELLIPSIS
      end

      # Wraps a text to lines of at most so many columns. Lines after the first are indented.
      #: (String, Integer, ?indent: String) -> Array[String]
      def wrap(text, columns, indent: "  ")
        lines = []
        safe(text).split(/ +/).each do |word|
          if lines.empty?
            lines << word
          elsif width(lines.last) + 1 + width(word) <= columns
            lines[-1] = "#{lines.last} #{word}"
          else
            lines << "#{indent}#{word}"
          end
        end
        lines.map { |line| shorten_right(line, columns) }
      end

      def head(text, columns)
        return text[0, [columns, 0].max] if text.ascii_only?

        taken = +""
        text.each_grapheme_cluster do |char|
          break if width(taken) + width(char) > columns

          taken << char
        end
        taken
      end
      private_class_method :head

      def tail(text, columns)
        return text[-columns..] if text.ascii_only?

        taken = []
        room = columns
        text.grapheme_clusters.reverse_each do |char|
          break if (room -= width(char)).negative?

          taken.unshift(char)
        end
        taken.join
      end
      private_class_method :tail
    end
  end
end
