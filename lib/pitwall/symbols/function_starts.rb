# frozen_string_literal: true

module Pitwall
  module Symbols
    # Where the functions of a shared object begin, also of a stripped one: from the table of its `.eh_frame_hdr`.
    # Nothing in the file is trusted.
    #
    #   FunctionStarts.read("/usr/lib/libruby.so").start(0x2120af)   # => 0x211f20, the address of the function there
    # @api private
    class FunctionStarts
      SEGMENTS = 1024
      FUNCTIONS = 4_000_000
      LOADED = 1
      UNWINDING = 0x6474E550
      # Places in files are signed.
      PLACES = 1 << 63
      # Version and encodings: 4 bytes relative to their place, 4 bytes absolute, 4 bytes relative to the header.
      USUAL = [1, 0x1B, 0x03, 0x3B].freeze
      private_constant :SEGMENTS, :FUNCTIONS, :LOADED, :UNWINDING, :PLACES, :USUAL

      # @return [FunctionStarts] one that knows nothing where the file can't be read or has no such table
      #: (String) -> FunctionStarts
      def self.read(path)
        return new([], []) unless ElfFile.file?(path)

        File.open(path, "rb") { |io| new(*Table.new(io).read) }
      rescue SystemCallError, EOFError, ElfFile::Malformed
        new([], [])
      end

      # @param loads [Array<[offset, address, size]>] parts of the file that are loaded
      # @param starts [Array<Integer>] ascending
      #: (Array[[Integer, Integer, Integer]], Array[Integer]) -> void
      def initialize(loads, starts)
        @loads = loads
        @starts = starts
      end

      # The virtual address of a place in the file.
      #: (Integer) -> Integer?
      def address(offset)
        from, there, = @loads.find { |at, _, size| offset >= at && offset - at < size }
        offset - from + there if from
      end

      # The start of the function that has the address; nil where it is not known.
      #: (Integer) -> Integer?
      def start(address)
        at = (@starts.bsearch_index { |start| start > address } || @starts.size) - 1
        @starts[at] unless at.negative?
      end

      # Reads both lists of an ELF object.
      class Table
        #: (File) -> void
        def initialize(io)
          @io = io
        end

        # @return [Array] loads and starts
        #: () -> [Array[[Integer, Integer, Integer]], Array[Integer]]
        def read
          at, size, count = bytes(0, 64).unpack("@32Q<@54S<S<")
          raise ElfFile::Malformed, "has headers of #{size} bytes" unless size == 56

          all = Array.new([count, SEGMENTS].min) { |number| bytes(at + number * 56, 56).unpack("L<x4Q<Q<x8Q<") }
          loads = all.select { |type,| type == LOADED }.map { |_, offset, address, bytes| [offset, address, bytes] }
          table = all.find { |type,| type == UNWINDING }
          [loads, table ? starts(*table.drop(1)) : []]
        end

        private

        def starts(offset, address, size)
          head = bytes(offset, [size, 12].min)
          return [] unless head.bytesize == 12 && head.unpack("C4") == USUAL

          count = head.unpack1("@8L<")
          return [] if count > FUNCTIONS || count * 8 > size - 12

          bytes(offset + 12, count * 8).unpack("l<x4" * count).map { |distance| address + distance }.sort
        end

        def bytes(at, size)
          raise ElfFile::Malformed, "has a place outside" if at >= PLACES

          read = @io.pread(size, at)
          read.bytesize == size ? read : raise(ElfFile::Malformed, "is cut")
        end
      end
      private_constant :Table
    end
  end
end
