# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/launch/perf"
require "pitwall/launch/perf_stream"

module Pitwall
  class Launch
    # A perf that records a command beside Pitwall.
    #
    # perf records this process, and the events that it counts are inherited by every process that is started from here.
    # So the command is started as it is without perf: perf is neither its parent nor in its process group, and gets no
    # signal that is meant for it.
    class PerfRecording
      # Bytes of a thread's stack that perf copies with each sample, to unwind them later. Debian's Rubies have no frame
      # pointers, so perf can't follow these. The frames below the innermost Ruby method are nearly always within this.
      STACK_BYTES = 8192
      # Bytes of perf's file.
      MOST_BYTES = 4 << 30
      # Seconds for perf to begin, and to write its last samples.
      PATIENCE_S = 60
      # Exit status of perf after an unknown option.
      USAGE = 129
      # What perf says when its file is complete.
      COMPLETE = "Captured and wrote"
      private_constant :STACK_BYTES, :MOST_BYTES, :PATIENCE_S, :USAGE, :COMPLETE

      # perf does not record. The message says why, and what would mend it.
      class Refused < Error
        def status = Status::CANNOT_MEASURE
      end

      # @return [String] path of perf's file
      attr_reader :file
      # @return [Integer, nil] perf's process id
      attr_reader :pid
      # @return [Range] monotonic ns: the time that perf records
      attr_reader :window

      # @param folder [String] for perf's file
      # @param period_ns [Integer] CPU time of a thread between two samples
      #: (String, period_ns: Integer) -> void
      def initialize(folder, period_ns:)
        @file = File.join(folder, "perf.data")
        @messages = File.join(folder, "perf.messages")
        @period_ns = period_ns
        @window = 0..nil
      end

      # Starts perf, and waits until it records, or until it is ready to.
      # @param paused [Boolean] whether it is to begin later ({keep})
      # @raise [Refused]
      #: (?paused: bool) -> void
      def start(paused: false)
        program = Perf.path or raise Refused, "perf is not installed: install it (Debian: the package linux-perf)"

        commands, @commands = IO.pipe
        @answers, answers = IO.pipe
        @pid = spawn(program, commands, answers)
        [commands, answers].each(&:close)
        tell(paused ? "disable" : "enable")
      rescue SystemCallError => error
        raise Refused, "perf can't be started: #{SystemCallError.new(error.errno).message}"
      end

      # Records during a part of the command's time.
      # @param begin_at_ns, end_at_ns [Integer, nil] monotonic
      #: (?begin_at_ns: Integer?, ?end_at_ns: Integer?) -> void
      def keep(begin_at_ns: nil, end_at_ns: nil)
        return unless begin_at_ns || end_at_ns

        @window = (begin_at_ns || 0)..end_at_ns
        @timer = Thread.new { keep_times }
      end

      # Ends perf.
      # @return [String, nil] why its recording is not complete
      #: () -> String?
      def stop
        @timer&.kill&.join
        status = Process.wait2(@pid, Process::WNOHANG)&.last
        return early(status) if status

        Process.kill("INT", @pid)
        status = wait
        early(status) unless File.read(@messages).include?(COMPLETE)
      rescue Errno::ECHILD
        nil
      ensure
        [@commands, @answers].each(&:close)
      end

      # Reads the samples as text.
      # @yield [#read]
      # @raise [BadRecording]
      #: [T] () { (untyped) -> T } -> T
      def text(&block)
        feed = ->(pipe) { File.open(@file, "rb") { |file| PerfStream.copy(file, pipe) } }
        Perf.script("-", name: "perf's recording", feed: feed, &block)
      end

      # Removes perf's files.
      #: () -> void
      def remove
        [@file, @messages, "#{@file}.old"].each { |file| File.unlink(file) if File.exist?(file) }
      rescue SystemCallError
        nil
      end

      private

      def spawn(program, commands, answers)
        Process.spawn(program, "record", "-e", Perf::EVENT, "-c", @period_ns.to_s,
                      "--call-graph", "dwarf,#{STACK_BYTES}", "-k", "CLOCK_MONOTONIC", "-D", "-1",
                      "--control", "fd:#{commands.fileno},#{answers.fileno}",
                      "-B", "-N", "--max-size", "#{MOST_BYTES >> 20}M", "-p", Process.pid.to_s, "-o", "-",
                      in: File::NULL, out: [@file, "w", 0o600], err: [@messages, "w", 0o600], pgroup: true,
                      commands => commands, answers => answers)
      end

      # Sends a command, and waits until perf has done it.
      # @raise [Refused] perf has ended
      def tell(command)
        @commands.write("#{command}\n")
        answer = +""
        until answer.include?("ack")
          raise Refused, timed_out unless IO.select([@answers], nil, nil, PATIENCE_S)

          answer << @answers.readpartial(16)
        end
      rescue EOFError, Errno::EPIPE
        raise Refused, refusal(wait)
      end

      def timed_out
        Process.kill("KILL", @pid)
        wait
        "perf did not begin within #{PATIENCE_S} s"
      end

      def refusal(status)
        reason = Perf.reason(@messages)
        if status.exitstatus == USAGE || reason.match?(/unknown (?:option|switch)|Failed to parse/i)
          return "perf is too old (#{reason}): install perf 5.10 or newer"
        end
        return "perf is not allowed to record here (#{reason}): #{permission}" if Perf.forbidden?(@messages)

        "perf does not record (#{reason})"
      end

      def permission = "sysctl kernel.perf_event_paranoid=1; in a container also --cap-add PERFMON, or SYS_ADMIN"

      def early(status)
        return "perf was killed (SIG#{Signal.signame(status.termsig)})" if status.signaled?

        "perf ended early (#{Perf.reason(@messages)})"
      end

      def wait
        deadline = clock + PATIENCE_S
        until (found = Process.wait2(@pid, Process::WNOHANG))
          Process.kill("KILL", @pid) if clock > deadline
          sleep 0.01
        end
        found.last
      end

      # Records during the window only.
      def keep_times
        sleep_until(@window.begin) and tell("enable") unless @window.begin.zero?
        sleep_until(@window.end) and tell("disable") if @window.end
      rescue Refused, SystemCallError, IOError
        nil # told when perf is stopped
      end

      def sleep_until(time_ns)
        left = time_ns - Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
        sleep left / 1e9 if left.positive?
        true
      end

      def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
