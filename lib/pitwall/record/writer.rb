# frozen_string_literal: true

require "json"
require "tempfile"
require "pitwall/record"
require "pitwall/record/budget"
require "pitwall/record/chunks"
require "pitwall/record/malformed"
require "pitwall/record/writer/segment_writer"

module Pitwall
  module Record
    # Writes a recording from Ruby, as doc/record-format.md describes it. Recorded programs use the writer of the
    # extension; this one is for data that other tools recorded.
    #
    #   writer = Writer.new(io)
    #   segment = writer.segment("program" => "shop.rb", "pid" => 4242)
    #   segment.thread(1, "main")
    #   node = segment.stack([["Object#main", "/app/shop.rb", 1, 3, Frame::RUBY]])
    #   segment.row(thread: 1, node: node, wall: 1_000_000)
    #   segment.close({ "elapsed_ns" => 1_000_000 })
    #   writer.close
    #
    # Several segments may be open at the same time. Memory is bounded by the tables of names and stacks: rows are
    # written as soon as there are SegmentWriter::ROWS of them. What the reader would refuse is refused here.
    # @api private
    class Writer
      MAGIC = "PITWALL #{VERSION}\n".b.freeze
      # Keys of every HEAD. `unit_ns` 1: rows are in nanoseconds.
      HEAD = { "schema" => "pitwall/record-1", "unit_ns" => 1 }.freeze
      private_constant :MAGIC, :HEAD

      # Writes a recording anew.
      #: (String, IO) { (Segment, untyped) -> Hash[String, untyped] } -> void
      def self.rewrite(path, io, &block)
        require "pitwall/record/writer/rewriting"
        Rewriting.call(path, io, &block)
      end

      # @param io [IO, StringIO] an empty file, open for writing; the caller closes it
      #: (untyped) -> void
      def initialize(io)
        @io = io
        io.binmode
        @budget = Budget.new(Chunks.limits)
        @segments = []
      end

      # Begins a segment. Its HEAD is written at once.
      # @param head [Hash{String => Object}] keys of HEAD
      # @raise [Malformed] more segments than a recording holds
      #: (Hash[String, untyped]) -> SegmentWriter
      def segment(head)
        raise Malformed, "has more than #{Limits::SEGMENTS} processes" if @segments.size >= Limits::SEGMENTS

        # The first segment goes straight to the file. The chunks of the others wait, because chunks of two segments
        # can't stand in turns.
        sink = @segments.empty? ? @io : Spooled.new(spool)
        sink << MAGIC
        SegmentWriter.new(sink, HEAD.merge(head), @budget).tap { |segment| @segments << [segment, sink] }
      end

      # Ends all segments that are still open, and writes what waited.
      #: () -> void
      def close
        @segments.each do |segment, sink|
          segment.close unless segment.closed?
          sink.copy_to(@io) if sink.is_a?(Spooled)
        end
        @spool&.close!
      end

      # What all segments hold: rows, calls, sites, threads.
      #: () -> Hash[Symbol, Integer]
      def counts
        none = { rows: 0, calls: 0, sites: 0, threads: 0 }
        none.merge(*@segments.map { |segment,| segment.counts }) { |_, sum, count| sum + count }
      end

      # The part of the temporary file that belongs to one segment.
      class Spooled
        #: (File) -> void
        def initialize(file)
          @file = file
          @extents = []
        end

        #: (String) -> Spooled
        def <<(bytes)
          @extents << [@file.seek(0, IO::SEEK_END).then { @file.pos }, bytes.bytesize]
          @file.write(bytes)
          self
        end

        #: (IO) -> void
        def copy_to(io)
          @extents.each do |at, size|
            @file.seek(at)
            IO.copy_stream(@file, io, size)
          end
        end
      end
      private_constant :Spooled

      private

      def spool = @spool ||= Tempfile.new("pitwall-segments", binmode: true)
    end
    private_constant :Writer
  end
end
