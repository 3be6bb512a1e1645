# frozen_string_literal: true

module Pitwall
  module Record
    # A method, block or C function. first_line: the line of the definition, 0 where unknown · kind: one of the
    # constants below.
    Frame = Struct.new(:id, :name, :path, :first_line, :kind)

    class Frame
      RUBY = 0
      # A C function that is a method.
      C = 1
      # Garbage collection.
      GC = 2
      # A native symbol.
      NATIVE = 3
      # Made by Pitwall, e.g. "(not sampled)".
      PITWALL = 4

      # The frame for an id whose name is not in the file, because the process ended before it wrote the name.
      #: (Integer) -> Frame
      def self.unresolved(id) = new(id, "(unresolved)", "", 0, PITWALL)
    end
  end
end
