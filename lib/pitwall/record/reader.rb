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
      # What to do about an error of writing.
      MENDS = { Errno::ENOSPC::Errno => ": make room", Errno::EDQUOT::Errno => ": make room", Errno::EFBIG::Errno => ": ulimit -f, or max_bytes" }.freeze
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
          @budget = SegmentBuilder::Budget.fresh
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
        @headless ? "ends inside its header, after #{@headless} bytes: nothing was recorded" : "nothing in it could be read"
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
        segment.syscall_facts&.words&.each { |words| warning(:syscalls, "#{who}: #{words}", nil) }
        warning(:lost, "#{who}: #{builder.lost} names or stacks were lost with the damaged parts", nil) if builder.lost.positive?
      end

      # Who writes it holds a lock.
      def being_written?(io)
        @segments.last.tail.nil? && !io.flock(File::LOCK_SH | File::LOCK_NB)
      rescue SystemCallError
        false
      end

      # A process that goes on under the same id after a segment without end has replaced its program.
      def warn_of_ends(living)
        @segments.each_with_index do |segment, at|
          next if segment.tail
          next unwritten(segment, at) if segment.stat("write_error").positive?

          pid = segment.header.pid
          if pid && @segments.drop(at + 1).any? { |later| later.header.pid == pid }
            warning(:replaced, "process #{pid} called exec: what it was before is complete to the last flush", nil)
          else
            who = pid ? "process #{pid}" : "process #{at + 1} of the file"
            lives = living && segment.equal?(@segments.last)
            lives ? warning(:recording, "#{who} is still recording: complete to the last flush", nil) : warning(:unstopped, "#{who} ended without stop; complete to the last flush", nil)
          end
        end
      end

      def unwritten(segment, at)
        error, whole = segment.stat("write_error"), segment.stat("unwritten_until_ns")
        had = format("%.3g s", segment.stat("elapsed_ns") / 1e9)
        who = segment.header.pid ? "process #{segment.header.pid}" : "process #{at + 1} of the file"
        warning(:unwritten, "#{who} could not write its recording to the end (#{SystemCallError.new(error).message}#{MENDS[error]}): " \
                            "it holds #{had}#{format(" of %.3g s", whole / 1e9) if whole.positive?}, complete to the last flush", nil)
      end

      def warning(code, message, offset)
        @warnings << Warning.new(code: code, message: message, offset: offset)
      end
    end
    private_constant :Reader
  end
end
