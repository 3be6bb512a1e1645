# frozen_string_literal: true

module Pitwall
  module Record
    # A method, block or C function, as the recording names it. first_line is where it is defined, 0 when unknown.
    # kind: 0 Ruby, 1 C function, 2 garbage collection, 3 native symbol, 4 made by Pitwall.
    Frame = Struct.new(:id, :name, :path, :first_line, :kind)

    class Frame
      RUBY = 0
      C = 1
      GC = 2
      NATIVE = 3
      PITWALL = 4

      # What stands for a frame whose name the process did not live to write.
      #: (Integer) -> Frame
      def self.unresolved(id) = new(id, "(unresolved)", "", 0, PITWALL)
    end
  end
end
