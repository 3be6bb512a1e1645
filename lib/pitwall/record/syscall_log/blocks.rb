# frozen_string_literal: true

require "zlib"

module Pitwall
  module Record
    class SyscallLog
      # Splits a log into lines, 256 KiB at a time. Decompresses gzip, also several gzip members in a row.
      # @api private
      class Blocks
        SIZE = 1 << 18
        # Bytes of the longest line. Two paths of 4 KiB with all bytes escaped are half as long.
        LONGEST = 1 << 16
        WINDOW = LONGEST / 2
        # A line without a tab: the first line of a block, and a later one.
        NO_TAB_FIRST = /\A[^\t\n]*+(?:\n|\z)/n.freeze
        NO_TAB = /\n[^\t\n]*+(?:\n|\z)/n.freeze
        GZIP = "\x1F\x8B".b
        private_constant :SIZE, :LONGEST, :WINDOW, :NO_TAB_FIRST, :NO_TAB, :GZIP

        # @return [String] the first 16 bytes, decompressed
        attr_reader :beginning
        # @return [Integer] lines that were too long
        attr_reader :dropped
        # @return [String, nil] the beginning of the first of these lines
        attr_reader :first_dropped
        # @return [String, nil] why reading ended before the end of the log
        attr_reader :fault

        def initialize(io)
          @io = io
          @rest = +"".b
          @dropped = 0
          @ready = []
          first = read_raw.to_s
          @gzip = Zlib::Inflate.new(Zlib::MAX_WBITS + 16) if first.start_with?(GZIP)
          @pending = first
          fill until @ended || @ready.any?
          @beginning = (@ready.first || "").byteslice(0, 16)
        end

        def packed? = !@gzip.nil?

        # The next `count` lines.
        def take(count)
          fill while !@ended && @ready.size < count
          @ready.shift(count)
        end

        # Yields the remaining lines, many at once.
        # @param fields [Boolean] for a block in which each line has exactly one tab, yield the text before the tab and
        #   the text behind it, in turn; faster than lines
        # @yield [Array<String>, Boolean] lines or fields, and whether they are fields
        def each(fields: false)
          @in_fields = fields
          until @ready.empty? && @ended
            fill if @ready.empty?
            lines, @ready = @ready, []
            yield lines, false unless lines.empty?
            found, @fields = @fields, nil
            yield found, true if found
          end
        end

        private

        def fill
          data = read_block
          return finish unless data

          @rest = @rest.empty? ? data : @rest << data
          cut = @rest.rindex("\n")
          return too_long if cut.nil?

          block = @rest.byteslice(0, cut)
          @rest = @rest.byteslice(cut + 1, @rest.bytesize)
          return if @in_fields && !@skipping && (@fields = fields(block))

          add(block.split("\n", -1))
        end

        def fields(block)
          return if NO_TAB_FIRST.match?(block) || NO_TAB.match?(block) || !short?(block)

          found = block.tr("\t", "\n").split("\n", -1)
          # A line with several tabs has more fields.
          found if found.size == (block.count("\n") + 1) * 2
        end

        # Whether no line is too long. A line that is longer than LONGEST covers a window of half that length.
        def short?(block)
          (0...block.bytesize).step(WINDOW).all? { |from| (block.index("\n", from) || block.bytesize) < from + WINDOW }
        end

        def add(lines)
          drop(lines.shift) if @skipping && lines.any?
          lines.reject! { |line| line.bytesize > LONGEST && drop(line) }
          @ready.concat(lines)
        end

        def drop(line)
          @dropped += 1 unless @skipping
          @first_dropped ||= line.byteslice(0, 200)
          @skipping = false
          true
        end

        # Binary data may have no end of line for megabytes. Drops what was read and all bytes up to the next end of
        # line.
        def too_long
          return if @rest.bytesize <= LONGEST

          drop(@rest) unless @skipping
          @skipping = true
          @rest = +"".b
        end

        def finish
          @ended = true
          return if @rest.empty?

          add([@rest])
          @rest = +"".b
        end

        def read_block
          if @pending
            data, @pending = @pending, nil
            return data.empty? ? nil : (@gzip ? inflate(data) : data)
          end
          data = read_raw
          return @gzip ? inflate(data) : data if data

          @fault ||= "the gzip data ends too early; what was there counts" if @gzip && !@gzip.finished?
          nil
        end

        def read_raw
          @io.read(@gzip ? SIZE / 8 : SIZE)
        rescue SystemCallError, IOError => error
          @fault ||= "reading it ended early: #{error.message}; what was there counts"
          nil
        end

        def inflate(data)
          out = +"".b
          until data.nil? || data.empty?
            @gzip = Zlib::Inflate.new(Zlib::MAX_WBITS + 16) if @gzip.finished?
            before = @gzip.total_in
            out << @gzip.inflate(data)
            data = @gzip.finished? ? data.byteslice(@gzip.total_in - before, data.bytesize) : nil
          end
          out
        rescue Zlib::Error => error
          @fault ||= "the gzip data is damaged (#{error.message}); what was there counts"
          @io = Nothing
          out.empty? ? nil : out
        end

        # Takes the place of the IO behind damaged data.
        module Nothing
          def self.read(*) = nil
        end
        private_constant :Nothing
      end
    end
  end
end
