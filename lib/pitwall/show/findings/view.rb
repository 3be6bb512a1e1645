# frozen_string_literal: true

require "pitwall/show/terminal/text"

module Pitwall
  module Show
    # The findings of a recording as text. Reports begin with this text.
    class FindingsView
      #: (width: Integer, palette: untyped) -> void
      def initialize(width:, palette:)
        @width = width
        @palette = palette
      end

      # The findings' lines. Commands are not wrapped, so that they can be copied.
      # @param findings [Array<Hash{String => Object}>] objects that FindingWords#to_h returns
      #: (Array[Hash[String, untyped]]) -> Array[String]
      def lines(findings)
        return [] if findings.empty?

        ["", *findings.flat_map { |finding| finding(finding) }]
      end

      private

      def finding(finding)
        sentence, *rest = Text.wrap(finding["text"], @width - 2)
        [*["> #{sentence}", *rest.map { |line| "  #{line}" }].map { |line| @palette.bold(line) },
         @palette.dim("    more:  #{finding["more"]}"),
         *(@palette.dim("    proof: #{finding["proof"]}") if finding["proof"])]
      end
    end
  end
end
