# frozen_string_literal: true

require "pitwall/show/terminal/text"

module Pitwall
  module Show
    # Shortens the path of a method's definition: relative to a folder, or from the gem's name on.
    class Location
      # …/gems/rack-3.1.8/lib/rack.rb → rack-3.1.8/lib/rack.rb
      GEM = %r{\A.*/gems/([^/]+-\d[^/]*/.*)\z}m.freeze
      private_constant :GEM

      # @param base [String, nil] folder; paths below it are shown relative to it
      #: (?String?) -> void
      def initialize(base = nil)
        @base = base && !base.empty? ? "#{base.chomp("/")}/" : nil
      end

      # Path and line: "lib/shop.rb:12"; "" for a method without a file.
      # @param line [Integer] 0 where unknown
      #: (String, Integer) -> String
      def text(path, line)
        return "" if path.empty?

        short = @base && path.start_with?(@base) ? path.delete_prefix(@base) : path.sub(GEM, '\1')
        line.positive? ? "#{short}:#{line}" : short
      end

      # Path and line in a number of columns. A longer text is cut from the left: "…/shop.rb:12".
      # The cut is moved to the next slash when the slash lies in the left half.
      #: (String, Integer, Integer) -> String
      def fit(path, line, columns)
        text = Text.safe(text(path, line))
        return text if Text.width(text) <= columns
        return "" if columns < 5

        cut = Text.shorten_left(text, columns)
        slash = cut.index("/")
        slash && slash.positive? && slash < columns / 2 ? "#{Text::ELLIPSIS}#{cut[slash..]}" : cut
      end
    end
  end
end
