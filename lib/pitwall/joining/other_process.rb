# frozen_string_literal: true

require "pitwall/record"

module Pitwall
  module Joining
    # A process of the command that recorded nothing: a program without Ruby, or a Ruby that Pitwall can't record. It
    # has native frames only, and CPU time: perf sees no thread that waits.
    # @api private
    class OtherProcess
      # @param window [Range] monotonic ns: samples outside are left out
      #: (Seen, Integer, window: Range[Integer?], period_ns: Integer) -> void
      def initialize(seen, pid, window:, period_ns:)
        @seen = seen
        @pid = pid
        @window = window
        @period_ns = period_ns
      end

      # Writes a part, where there is anything to write.
      # @return [Integer] samples
      #: (String) -> Integer
      def write(file)
        threads = @seen.threads(@pid).keys.to_h { |tid| [tid, inside(@seen.of(@pid, tid))] }
        threads.reject! { |_, rows| rows.empty? }
        return 0 if threads.empty?

        File.open(file, "wb", 0o600) do |io|
          Record.write(io) { |writer| put(writer.segment(head(threads)), threads) }
        end
        threads.each_value.sum(&:size)
      end

      private

      # [[time, period, number of the stack]…]
      def inside(samples)
        samples.to_a.transpose.select { |time, _, _| @window.cover?(time) }
      end

      def start(threads) = threads.each_value.map { |rows| rows.first[0] - rows.first[1] }.min

      def head(threads)
        { "collector" => "perf", "program" => @seen.threads(@pid).fetch(threads.keys.min), "pid" => @pid,
          "interval_ns" => @period_ns, "started_at_ns" => start(threads) + unix_offset_ns, "clock" => "monotonic",
          "thread_states" => true }
      end

      def unix_offset_ns
        Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond) -
          Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
      end

      def put(segment, threads)
        from = start(threads)
        threads.each_with_index do |(tid, rows), at|
          first = rows.first[0] - rows.first[1]
          segment.thread(at + 1, @seen.threads(@pid)[tid], native_id: tid, start_ns: first - from)
          rows.each do |_, period, tail|
            segment.row(thread: at + 1, node: tail ? node(segment, tail) : 0, wall: period, cpu: period)
          end
        end
        @seen.objects.each { |path, id| segment.shared_object(path, id, 2) }
        samples = threads.each_value.sum(&:size)
        segment.close({ "perf_samples" => samples, "perf_joined" => samples })
      end

      def node(segment, tail)
        segment.stack(@seen.stack(tail).map { |one| [one.name, one.path, 0, 0, Record::Frame::NATIVE] })
      end
    end
  end
end
