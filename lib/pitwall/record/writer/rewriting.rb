# frozen_string_literal: true

require "pitwall/record"
require "pitwall/record/reader"
require "pitwall/record/writer"

module Pitwall
  module Record
    class Writer
      # Writes a recording anew with other rows in the place of its samples. All other chunks are copied as they are, so
      # nothing else changes. Memory is bounded as for reading.
      #
      #   Record.rewrite("4711-0.pit", io) do |segment, out|
      #     segment.each_rows { |rows| rows.each { |row| out.row(…) } }
      #     { "perf_samples" => 12 }                                # what is added to STAT
      #   end
      # @api private
      class Rewriting
        MAGIC = "PITWALL #{VERSION}\n".b.freeze
        HEADER_BYTES = 20
        # Chunks that are written anew. The last STAT stays, and another follows.
        ROWS = %w[SAMP OPEN].freeze
        private_constant :MAGIC, :HEADER_BYTES, :ROWS

        # @param io [IO] an empty file
        # @yield [segment, out] once for each segment, when all but its rows is written
        # @yieldparam out [SegmentWriter] continues the segment
        # @yieldreturn [Hash{String => Object}] keys of STAT
        # @raise [BadRecording]
        #: (String, IO) { (Segment, untyped) -> Hash[String, untyped] } -> void
        def self.call(path, io, &block) = new(path, io, block).call

        def initialize(path, io, block)
          @path = path
          @io = io
          @block = block
        end

        def call
          @waiting = Record.read(@path).segments
          @budget = Budget.new(Chunks.limits)
          File.open(@path, "rb") do |file|
            ChunkStream.new(file, path: @path, salvage: false).each do |type, offset, _|
              type == :segment ? finish : chunk(file, type, offset)
            end
            finish
          end
        rescue Malformed => error
          raise BadRecording, "#{@path}: #{error.message}"
        end

        private

        # The reader has no segment where a process ended before its HEAD was complete.
        def start
          @segment = @waiting.shift
          @tail = nil
          @io << MAGIC
        end

        def chunk(file, type, offset)
          return if ROWS.include?(type)

          start unless @segment
          bytes = file.pread(HEADER_BYTES, offset)
          bytes << file.pread(bytes.unpack1("@8V"), offset + HEADER_BYTES) if bytes.unpack1("@8V").positive?
          type == "TAIL" ? @tail = bytes : @io << bytes
        end

        def finish
          segment, @segment = @segment, nil
          return unless segment

          after = [segment.strings.size, (segment.frames.keys.max || 0) + 1, segment.parents.size]
          take([*after, segment.threads.size, segment.shared_objects.size])
          out = SegmentWriter.new(@io, { "unit_ns" => segment.unit_ns }, @budget, after: after)
          stats = @block.call(segment, out)
          out.flush
          @io << Payload.json("STAT", without_failure(segment).merge(stats))
          @io << @tail if @tail
        end

        # ROOM says why writing failed, and is copied.
        def without_failure(segment)
          segment.stats.reject { |name, _| name == "unwritten_until_ns" }.merge("write_error" => 0)
        end

        # What the segment has already counts against the reader's limits.
        def take(sizes)
          %i[strings frames nodes threads shared_objects].zip(sizes) { |name, size| @budget.take(name, size) }
        end
      end
      private_constant :Rewriting
    end
  end
end
