# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/record"
require "pitwall/record/budget"
require "pitwall/record/chunk_stream"
require "pitwall/record/chunks"
require "pitwall/record/limits"
require "pitwall/record/malformed"
require "pitwall/record/recording"
require "pitwall/record/segment_builder"

module Pitwall
  module Record
    # Opens a file, hands its chunks to one SegmentBuilder a segment, and adds warnings about missing data.
    # @api private
    class Reader
      # Advice for an error of writing, by error number.
      MENDS = { Errno::ENOSPC::Errno => ": make room", Errno::EDQUOT::Errno => ": make room",
                Errno::EFBIG::Errno => ": ulimit -f, or max_bytes" }.freeze
      private_constant :MENDS

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
          @budget = Budget.new(Chunks.limits)
          @segments = []
          @warnings = []
          @stream.each { |type, offset, payload| type == :segment ? start(offset) : chunk(type, offset, payload) }
          finish(io.size)
          raise BadRecording, "#{@path}: #{nothing}" if @segments.empty?

          warn_of_ends(being_written?(io))
          Recording.new(@path, io.size, @segments, @stream.warnings + @warnings)
        end
      end

      private

      def nothing
        return "nothing in it could be read" unless @headless

        "ends inside its header, after #{@headless} bytes: nothing was recorded"
      end

      def check
        raise BadRecording, NO_STREAM if @path == "-"

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
        @builder ||= SegmentBuilder.new(@budget, salvage: @salvage) # salvage: no magic bytes before this chunk
        @builder.chunk(type, offset, payload)
      end

      def finish(offset)
        builder = @builder or return
        @builder = nil
        return cut_in_header(offset) unless builder.headed? || @salvage

        segment = settled(builder, offset)
        warn_about(builder, segment, offset)
        @segments << segment
      end

      # Some limits can be checked only when a segment's chunks are complete.
      def settled(builder, offset)
        builder.finish { |at| reopen(at) }
      rescue Malformed => e
        raise BadRecording.new("#{@path}: damaged: the segment before byte #{offset} #{e.message}",
                               advice: { salvage: nil })
      end

      # A process that ended inside its header recorded nothing. The other segments of the file are read.
      def cut_in_header(offset)
        @headless = offset
        warning(:headless, "a process ended inside its header (it was killed or the disk was full): " \
                           "nothing of it was recorded", offset)
      end

      # Segment#each_rows reads rows again long after the file was closed.
      def reopen(offset)
        open_file { |io| ChunkStream.new(io, path: @path, salvage: false).payload_at(offset) }
      end

      def warn_about(builder, segment, offset)
        who = process(segment, @segments.size)
        warning(:headless, "#{who} has no header: interval and units are guesses", offset) unless builder.headed?
        builder.warnings.each { |code, words| warning(code, "#{who}: #{words}", nil) }
        return unless builder.lost.positive?

        warning(:lost, "#{who}: #{builder.lost} names or stacks were lost with the damaged parts", nil)
      end

      # The name of a segment's process in warnings.
      def process(segment, at)
        segment.header.pid ? "process #{segment.header.pid}" : "process #{at + 1} of the file"
      end

      # A process that writes the file holds a lock on it.
      def being_written?(io)
        @segments.last.tail.nil? && !io.flock(File::LOCK_SH | File::LOCK_NB)
      rescue SystemCallError
        false
      end

      def warn_of_ends(being_written)
        @segments.each_with_index do |segment, at|
          next if segment.tail

          who = process(segment, at)
          if segment.stat("write_error").positive? then warn_unwritten(segment, who)
          elsif replaced?(segment, at)
            warning(:replaced, "#{who} called exec: what it was before is complete to the last flush", nil)
          elsif being_written && segment.equal?(@segments.last)
            warning(:recording, "#{who} is still recording: complete to the last flush", nil)
          else
            warning(:unstopped, "#{who} ended without stop; complete to the last flush", nil)
          end
        end
      end

      # A later segment of the same process id, where this segment has no TAIL: the process replaced its program by
      # exec.
      def replaced?(segment, at)
        pid = segment.header.pid
        pid && @segments.drop(at + 1).any? { |later| later.header.pid == pid }
      end

      def warn_unwritten(segment, who)
        error, whole = segment.stat("write_error"), segment.stat("unwritten_until_ns")
        holds = format("%.3g s", segment.stat("elapsed_ns") / 1e9)
        holds += format(" of %.3g s", whole / 1e9) if whole.positive?
        warning(:unwritten, "#{who} could not write its recording to the end (#{failure(error)}#{MENDS[error]}): " \
                            "it holds #{holds}, complete to the last flush", nil)
      end

      # The words of an error number. In a damaged file the number may be too large for the system.
      def failure(error) = error.bit_length < 32 ? SystemCallError.new(error).message : "error #{error}"

      def warning(code, message, offset)
        @warnings << Warning.new(code: code, message: message, offset: offset)
      end
    end
    private_constant :Reader
  end
end
