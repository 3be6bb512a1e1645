# frozen_string_literal: true

module Pitwall
  module Show
    # Replaces the signs of Pitwall's views by ASCII, for terminals that show nothing else. Letters in names stay.
    module Ascii
      SIGNS = { "…" => "~", "µ" => "u", "−" => "-", "–" => "-", "·" => "|", "×" => "x", "→" => ">",
                "±" => "+-", "≤" => "<" }.freeze
      # Columns by which a line may become longer: "±" becomes "+-".
      GROWTH = 4
      private_constant :SIGNS

      module_function

      # The text with its signs replaced.
      #: (String) -> String
      def of(text) = text.gsub(/[…µ−–·×→±≤]/, SIGNS)
    end
  end
end
