# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/record"
require "pitwall/record/chunk_stream"
require "pitwall/record/recording"
require "pitwall/record/segment_builder"

module Pitwall
  module Record
    # Opens a file, hands its chunks to one SegmentBuilder a segment, and says what is missing.
    # @api private
    class Reader
      #: (String, salvage: bool) -> void
      def initialize(path, salvage:)
        @path = path.to_s
        @salvage = salvage
      end

      #: () -> Recording
      def read
        check
        open_file do |io|
          @stream = ChunkStream.new(io, path: @path, salvage: @salvage)
          @budget = SegmentBuilder::Budget.fresh
          @segments = []
          @warnings = []
          @stream.each { |type, offset, payload| type == :segment ? start(offset) : chunk(type, offset, payload) }
          finish(io.size)
          raise BadRecording, "#{@path}: #{nothing}" if @segments.empty?

          warn_of_ends
          Recording.new(@path, io.size, @segments, @stream.warnings + @warnings)
        end
      end

      private

      def nothing
        @headless ? "ends inside its header, after #{@headless} bytes: nothing was recorded; --salvage reads what there is" : "nothing in it could be read"
      end

      def check
        raise BadRecording, "#{NO_STREAM}" if @path == "-"

        stat = File.stat(@path)
        raise UsageError, "#{@path}: is a directory: name a .pit file in it" if stat.directory?
        raise BadRecording, "#{@path}: #{NO_STREAM}" unless stat.file?
      rescue Errno::ENOENT, Errno::ENOTDIR
        raise UsageError, "#{@path}: no such file"
      rescue SystemCallError, ArgumentError => e
        raise BadRecording, "#{@path.inspect}: cannot be read: #{reason(e)}"
      end

      def open_file(&block)
        File.open(@path, "rb", &block)
      rescue SystemCallError, IOError => e
        raise BadRecording, "#{@path}: cannot be read: #{reason(e)}"
      end

      # "Permission denied @ rb_sysopen - x" → "Permission denied"
      def reason(error) = error.message[/\A[^@]*/].strip

      def start(offset)
        finish(offset) if @builder
        if @segments.size >= Limits::SEGMENTS
          raise BadRecording, "#{@path}: has more than #{Limits::SEGMENTS} segments: split it at byte #{offset}"
        end

        @builder = SegmentBuilder.new(@budget, salvage: @salvage)
      end

      def chunk(type, offset, payload)
        @builder ||= SegmentBuilder.new(@budget, salvage: @salvage) # salvage found no magic
        @builder.chunk(type, offset, payload)
      end

      def finish(offset)
        builder = @builder or return
        @builder = nil
        return cut_in_header(offset) unless builder.headed? || @salvage

        segment = builder.finish { |at| reopen(at) }
        warn_about(builder, segment, offset)
        @segments << segment
      end

      # Nothing of a process stands before its header. Where others are in the file, they are read.
      def cut_in_header(offset)
        @headless = offset
        warning(:headless, "a process ended inside its header (it was killed or the disk was full): nothing of it was recorded", offset)
      end

      # Rows are read again long after the file was closed.
      def reopen(offset)
        open_file { |io| ChunkStream.new(io, path: @path, salvage: false).payload_at(offset) }
      end

      def warn_about(builder, segment, offset)
        who = segment.header.pid ? "process #{segment.header.pid}" : "process #{@segments.size + 1} of the file"
        warning(:headless, "#{who} has no header: interval and units are guesses", offset) unless builder.headed?
        warning(:lost, "#{who}: #{builder.lost} names or stacks were lost with the damaged parts", nil) if builder.lost.positive?
      end

      # A process that goes on under the same id after a segment without end has replaced its program.
      def warn_of_ends
        @segments.each_with_index do |segment, at|
          next if segment.tail

          pid = segment.header.pid
          if pid && @segments.drop(at + 1).any? { |later| later.header.pid == pid }
            warning(:replaced, "process #{pid} called exec: what it was before is complete to the last flush", nil)
          else
            warning(:unstopped, "#{pid ? "process #{pid}" : "process #{at + 1} of the file"} ended without stop; complete to the last flush", nil)
          end
        end
      end

      def warning(code, message, offset)
        @warnings << Warning.new(code: code, message: message, offset: offset)
      end
    end
    private_constant :Reader
  end
end
