# frozen_string_literal: true

module Pitwall
  module Analyse
    # What identifies a method, block or C function across processes. line is where it is defined, 0 when unknown;
    # kind is Record::Frame's: 0 Ruby, 1 C, 2 garbage collection, 3 native, 4 made by Pitwall.
    MethodInfo = Struct.new(:name, :path, :line, :kind) do
      #: () -> bool
      def gc? = kind == 2

      # Whether the program's own lines can be charged: neither C, GC nor native.
      #: () -> bool
      def ruby? = kind.zero?

      # "block (2 levels) in Shop#total" → "Shop#total": the method that a block, rescue or ensure is written in.
      #: (String) -> String
      def self.around(name) = name.sub(/\A(?:(?:block|rescue|ensure)(?: \(\d+ levels\))? in )+/, "")
    end
  end
end
