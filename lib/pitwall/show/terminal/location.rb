# frozen_string_literal: true

require "pitwall/show/terminal/text"

module Pitwall
  module Show
    # Where a method stands, as short as it stays clear.
    class Location
      # …/gems/rack-3.1.8/lib/rack.rb → rack-3.1.8/lib/rack.rb
      GEM = %r{\A.*/gems/([^/]+-\d[^/]*/.*)\z}m.freeze
      private_constant :GEM

      # @param base [String, nil] the folder below which paths are shown relative
      #: (?String?) -> void
      def initialize(base = nil)
        @base = base && !base.empty? ? "#{base.chomp("/")}/" : nil
      end

      # "lib/shop.rb:12"; "" for what has no file.
      #: (String, Integer) -> String
      def text(path, line)
        return "" if path.empty?

        short = @base && path.start_with?(@base) ? path.delete_prefix(@base) : path.sub(GEM, '\1')
        line.positive? ? "#{short}:#{line}" : short
      end

      # The same in at most so many columns, cut from the left at a folder where that loses little.
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
