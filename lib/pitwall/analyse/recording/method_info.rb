# frozen_string_literal: true

module Pitwall
  module Analyse
    # Identifies a method, block or C function across processes. line: where it is defined, 0 when unknown.
    # kind is Record::Frame's: 0 Ruby, 1 C, 2 garbage collection, 3 native, 4 made by Pitwall.
    MethodInfo = Struct.new(:name, :path, :line, :kind) do
      # Whether it is a frame of garbage collection.
      #: () -> bool
      def gc? = kind == 2

      # Whether it is Ruby code, which has lines.
      #: () -> bool
      def ruby? = kind.zero?

      # Whether it is a function of machine code: of Ruby's interpreter, a library or the kernel. Its path is the shared
      # object, e.g. "/usr/lib/libc.so.6", and it has no line.
      #: () -> bool
      def native? = kind == 3

      # Path and line as people read it: of a native function the file name of its shared object.
      #: () -> [String, Integer]
      def where = native? ? [path[%r{[^/]*\z}], 0] : [path, line]

      # The method that contains a block, rescue or ensure: "block (2 levels) in Shop#total" → "Shop#total".
      #: (String) -> String
      def self.around(name) = name.sub(/\A(?:(?:block|rescue|ensure)(?: \(\d+ levels\))? in )+/, "")
    end
  end
end
