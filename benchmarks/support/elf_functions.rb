# frozen_string_literal: true

lib = File.expand_path("../../lib", __dir__)
$LOAD_PATH.unshift(lib) unless $LOAD_PATH.include?(lib)
require "pitwall/symbols"

module Benchmarks
  # Where the functions of a shared object begin, by the table in `.eh_frame_hdr`, and what Pitwall calls them: by a
  # symbol of the object or its debug file, else `libruby-3.1.so.3.1.2+0x2489a0`.
  class ElfFunctions
    LOAD = 1
    EH_FRAME_HEADER = 0x6474e550
    # Version 1; the table's entries are pairs of 4 bytes, relative to the header. What all linkers write.
    USUAL = [1, 0x1b, 0x03, 0x3b].freeze
    private_constant :LOAD, :EH_FRAME_HEADER, :USUAL

    #: (String) -> void
    def initialize(path)
      @name = File.basename(path)
      @bytes = File.binread(path)
      offset, size, count = @bytes.unpack1("@32 Q<"), *@bytes.unpack("@54 S< S<")
      @parts = Array.new(count) { |i| @bytes.unpack("@#{offset + (i * size)} L< L< Q< Q< Q< Q<") }
      @starts = starts.sort
      @names = {}
      names_of(path)
    end

    # @param offset [Integer] of an instruction in the file
    #: (Integer) -> String
    def name_at(offset)
      part = @parts.find { |type, _, from, _, _, bytes| type == LOAD && offset >= from && offset < from + bytes }
      return "#{@name}+?" unless part

      address = offset - part[2] + part[3]
      at = @starts.bsearch_index { |start| start > address } || @starts.size
      return "#{@name}+?" if at.zero?

      start = @starts[at - 1]
      @names[start]&.sub(/@@?.*/, "") || format("%s+0x%x", @name, start)
    end

    private

    def names_of(path)
      id = Pitwall::Symbols.const_get(:ElfFile).open(path, &:build_id)
      debug = "/usr/lib/debug/.build-id/#{id[0, 2]}/#{id[2..]}.debug"
      [path, *(debug if File.file?(debug))].each do |file|
        @names.update(Pitwall::Symbols.const_get(:ElfFile).open(file) { |elf| elf.names(@starts) })
      end
    end

    def starts
      _, _, offset, address, = @parts.find { |type, *| type == EH_FRAME_HEADER }
      return [] unless offset && @bytes.unpack("@#{offset} C4") == USUAL

      count = @bytes.unpack1("@#{offset + 8} L<")
      @bytes.byteslice(offset + 12, count * 8).unpack("l<*").each_slice(2).map { |start, _rules| start + address }
    end
  end
end
