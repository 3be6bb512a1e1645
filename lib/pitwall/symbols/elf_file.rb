# frozen_string_literal: true

module Pitwall
  module Symbols
    # The symbols of an ELF object or debug file (64 bits, little endian: x86-64, aarch64). Nothing in the file is
    # trusted: offsets, sizes and counts are checked against the file's size and the limits below.
    #
    # A reader of our own, because the gem elftools makes an object of each symbol and bounds nothing: an object of
    # 500,000 symbols would take minutes and gigabytes.
    # @api private
    class ElfFile
      # The file is no ELF object of that kind, or is damaged.
      class Malformed < StandardError; end

      Section = Struct.new(:name, :type, :offset, :size, :link, :entry_size)
      private_constant :Section

      MAGIC = "\x7FELF\x02\x01".b.freeze
      SECTIONS = 4096
      SEGMENTS = 1024
      SYMBOLS = 4_000_000
      NOTE_BYTES = 64 * 1024
      NAME_BYTES = 16 * 1024
      ALIASES = 32
      # Symbols that are tried before the nearest one: one function may lie within another.
      BACK = 64
      BLOCK = 4096
      SYMBOL_BYTES = 24
      private_constant :MAGIC, :SECTIONS, :SEGMENTS, :SYMBOLS, :NOTE_BYTES, :NAME_BYTES, :ALIASES, :BACK, :BLOCK,
                       :SYMBOL_BYTES

      SYMTAB = 2
      NOTE = 7
      DYNSYM = 11
      NOTE_SEGMENT = 4
      BUILD_ID_NOTE = 3
      FUNCTION = 2
      INDIRECT_FUNCTION = 10
      private_constant :SYMTAB, :NOTE, :DYNSYM, :NOTE_SEGMENT, :BUILD_ID_NOTE, :FUNCTION, :INDIRECT_FUNCTION

      # Is the file worth opening? Reads four bytes, of regular files only.
      #: (String) -> bool
      def self.file?(path)
        File.file?(path) && File.binread(path, 4) == "\x7FELF".b
      rescue SystemCallError
        false
      end

      # @yield [ElfFile] open while the block runs
      # @raise [Malformed, SystemCallError]
      #: (String) { (ElfFile) -> untyped } -> untyped
      def self.open(path)
        raise Malformed, "is no regular file" unless File.file?(path)

        File.open(path, "rb") { |io| yield new(io) }
      end

      #: (File) -> void
      def initialize(io)
        @io = io
        @size = io.size
        head = bytes(0, 64)
        raise Malformed, "is no 64-bit ELF object" unless head.start_with?(MAGIC)

        @segments_at, @sections_at = head.unpack("@32Q<Q<")
        @segment_size, @segment_count, @section_size, @section_count, = head.unpack("@54S<4")
      end

      # @return [String] in hexadecimal, "" where the object has none
      # @raise [Malformed]
      #: () -> String
      def build_id
        @build_id ||= notes.lazy.filter_map { |at, size| build_id_in(bytes(at, [size, NOTE_BYTES].min)) }.first || ""
      end

      # Has the file more than the symbols of exported functions?
      #: () -> bool
      def symtab? = sections.any? { |section| section.type == SYMTAB }

      # @param addresses [Array<Integer>] virtual addresses
      # @return [Hash{Integer => String}] linkage names of the functions there; without those that have no symbol
      # @raise [Malformed]
      #: (Array[Integer]) -> Hash[Integer, String]
      def names(addresses)
        table = sections.find { |section| section.type == SYMTAB } || sections.find { |one| one.type == DYNSYM }
        return {} unless table

        names = sections[table.link]
        raise Malformed, "has symbols without names" unless names && within?(names.offset, names.size)

        symbols = functions(table)
        addresses.each_with_object({}) do |address, found|
          name = name_at(address, symbols, names)
          found[address] = name if name
        end
      end

      private

      def within?(at, size) = at <= @size && size <= @size - at

      # @raise [Malformed] the file ends before
      def bytes(at, size)
        raise Malformed, "is cut or damaged" unless within?(at, size)
        return "".b if size.zero?

        read = @io.pread(size, at)
        read.bytesize == size ? read : raise(Malformed, "is cut or damaged")
      rescue EOFError
        raise Malformed, "is cut or damaged"
      end

      def sections
        @sections ||= if @sections_at.zero? then []
                      else
                        count = [@section_count, SECTIONS].min
                        raise Malformed, "has sections of #{@section_size} bytes" unless @section_size == 64

                        table = bytes(@sections_at, count * 64)
                        Array.new(count) { |at| Section.new(*table.unpack("@#{at * 64}L<L<x16Q<Q<L<x12Q<")) }
                      end
      end

      # [[offset, size]…] of sections with notes, or of segments where there are no sections.
      def notes
        found = sections.select { |section| section.type == NOTE }.map { |section| [section.offset, section.size] }
        found.empty? ? note_segments : found
      end

      def note_segments
        return [] unless @segment_size == 56

        count = [@segment_count, SEGMENTS].min
        table = bytes(@segments_at, count * 56)
        all = Array.new(count) { |at| table.unpack("@#{at * 56}L<x4Q<x16Q<") }
        all.select { |type, _, _| type == NOTE_SEGMENT }.map { |_, at, size| [at, size] }
      end

      def build_id_in(notes)
        at = 0
        while notes.bytesize - at >= 12
          name_size, size, type = notes.unpack("@#{at}L<3")
          value_at = at + 12 + (name_size + 3) / 4 * 4
          if type == BUILD_ID_NOTE && notes.byteslice(at + 12, name_size) == "GNU\0".b && size.between?(1, 64)
            value = notes.byteslice(value_at, size)
            return value.unpack1("H*") if value && value.bytesize == size
          end
          at = value_at + (size + 3) / 4 * 4
        end
      end

      # [values, ranks, names, sizes]: parallel arrays in the order of values.
      def functions(table)
        raise Malformed, "has symbols of #{table.entry_size} bytes" unless table.entry_size == SYMBOL_BYTES

        count = table.size / SYMBOL_BYTES
        raise Malformed, "has #{count} symbols; Pitwall reads up to #{SYMBOLS}" if count > SYMBOLS

        rows = []
        0.step(count - 1, BLOCK) do |from|
          n = [BLOCK, count - from].min
          fields = bytes(table.offset + from * SYMBOL_BYTES, n * SYMBOL_BYTES).unpack("L<CCS<Q<Q<" * n)
          fields.each_slice(6) { |name, info, _, index, value, size| collect(rows, name, info, index, value, size) }
        end
        rows.sort!.transpose
      end

      def collect(rows, name, info, index, value, size)
        type = info & 15
        local = info < 16
        return if index.zero? || index >= 0xff00 || name.zero? || value.zero?
        return unless type == FUNCTION || type == INDIRECT_FUNCTION || (type.zero? && !local)

        rank = local ? 1 : 0
        rows << [value, type.zero? ? 2 : rank, name, size]
      end

      # The function that has the address. Of several names the exported one, with the fewest underscores in front, the
      # shortest.
      def name_at(address, symbols, names)
        values, ranks, offsets, sizes = symbols
        return unless values

        holds = ->(at) { values[at] == address || address - values[at] < sizes[at] }
        last = (values.bsearch_index { |value| value > address } || values.size) - 1
        at = last.downto([last - BACK + 1, 0].max).find(&holds) or return
        first = values.bsearch_index { |value| value >= values[at] }
        aliases = (first...[first + ALIASES, values.size].min).take_while { |one| values[one] == values[at] }
        aliases.select(&holds).group_by { |one| ranks[one] }.sort.each do |_, same|
          found = same.filter_map { |one| name(names, offsets[one]) }
          return found.min_by { |text| [text[/\A_*/].size, text.size, text] } unless found.empty?
        end
        nil
      end

      def name(names, offset)
        return if offset >= names.size

        text = bytes(names.offset + offset, [NAME_BYTES, names.size - offset].min).unpack1("Z*")
        text.force_encoding(Encoding::UTF_8)
        text = text.scrub("?")
        text unless text.empty? || text.start_with?("$")
      end
    end
    private_constant :ElfFile
  end
end
