# frozen_string_literal: true

require "zlib"

module Pitwall
  module Record
    class SyscallLog
      # Bytes → lines, a quarter of a megabyte at a time; gzip (also several members in a row) unpacked on the way.
      # @api private
      class Blocks
        SIZE = 1 << 18
        # A line longer than this is none: two paths of 4 KiB, each byte escaped, are half of it.
        LONGEST = 1 << 16
        WINDOW = LONGEST / 2
        # A line without a tab: the first, another.
        NO_TAB_FIRST = /\A[^\t\n]*+(?:\n|\z)/n.freeze
        NO_TAB = /\n[^\t\n]*+(?:\n|\z)/n.freeze
        GZIP = "\x1F\x8B".b
        private_constant :SIZE, :LONGEST, :WINDOW, :NO_TAB_FIRST, :NO_TAB, :GZIP

        # The first bytes, unpacked; lines that were too long; the first of these; what ended the log early, or nil.
        attr_reader :beginning, :dropped, :first_dropped, :fault

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

        # The first so many lines.
        def take(count)
          fill while !@ended && @ready.size < count
          @ready.shift(count)
        end

        # All other lines, many at once.
        # @param halves [Boolean] where each line of a block has one tab, rather what stands before and behind it, in turn: far fewer steps a line
        # @yield [Array<String>, Boolean] whether they are halves
        def each(halves: false)
          @halving = halves
          until @ready.empty? && @ended
            fill if @ready.empty?
            lines, @ready = @ready, []
            yield lines, false unless lines.empty?
            found, @halves = @halves, nil
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
          return if @halving && !@skipping && (@halves = halves(block))

          add(block.split("\n", -1))
        end

        def halves(block)
          return if NO_TAB_FIRST.match?(block) || NO_TAB.match?(block) || !short?(block)

          found = block.tr("\t", "\n").split("\n", -1)
          # More where a line has several.
          found if found.size == (block.count("\n") + 1) * 2
        end

        # Whether no line can be too long: it would hold a window of half its length.
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

        # Binary data has no end of line for long: let go of it, and of what follows up to the next.
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

        # Behind damaged data.
        module Nothing
          def self.read(*) = nil
        end
        private_constant :Nothing
      end
    end
  end
end
