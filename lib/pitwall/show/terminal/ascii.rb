# frozen_string_literal: true

module Pitwall
  module Show
    # For terminals that show nothing else: the signs our own views use, in ASCII. Other letters, as in names, are left as they are.
    module Ascii
      SIGNS = { "…" => "~", "µ" => "u", "−" => "-", "–" => "-", "·" => "|", "×" => "x", "→" => ">", "±" => "+-", "≤" => "<" }.freeze
      # Columns that a line may grow by.
      GROWTH = 4
      private_constant :SIGNS

      module_function

      #: (String) -> String
      def of(text) = text.gsub(/[…µ−–·×→±≤]/, SIGNS)
    end
  end
end
