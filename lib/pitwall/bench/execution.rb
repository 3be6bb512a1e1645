# frozen_string_literal: true

require "tempfile"
require "pitwall/errors"
require "pitwall/native"
require "pitwall/launch/process_group"
require "pitwall/version"

module Pitwall
  module Bench
    # One process under measurement: started by the launcher (ext/pitwall/launcher) on one core, followed to its end,
    # ended with all it started when it takes too long or when Pitwall itself is interrupted.
    class Execution
      # usage:  Hash String → Integer of what the launcher counted: wall, user, system (ns), max_rss (bytes), faults, switches…
      # lines:  what the process wrote to its report descriptor, if it was given one
      # exit, signal: how it ended; error: errno of an exec that failed
      # errors: the end of what it wrote to standard error
      Finished = Struct.new(:usage, :lines, :exit, :signal, :error, :errors, :timed_out, keyword_init: true) do
        # Whether it ended by itself, with status 0.
        def success? = exit.eql?(0) && !timed_out
      end

      TAIL = 4_096 # bytes of standard error kept for the message of a failure
      GRACE = 0.5 # seconds between asking a process to end and ending it
      REPORT_FD = 3 # in the process
      MOST_REPORTED = 8 << 20 # bytes; a report is some kilobytes
      private_constant :TAIL, :GRACE, :MOST_REPORTED

      #: (Array[String], ?env: Hash[String, String?], ?dir: String, ?cpu: Integer, ?timeout: Numeric, ?output: IO | String) -> void
      # @param command [Array<String>] what it reports goes to descriptor REPORT_FD
      # @param cpu [Integer] core to run on; -1 any
      # @param timeout [Numeric] seconds
      # @param output where its standard output goes
      # @param seat [Turns::Seat, nil] where it runs in turns with others
      def initialize(command, env: {}, dir: Dir.pwd, cpu: -1, timeout: 60, output: File::NULL, seat: nil)
        @command = command
        @env = env
        @dir = dir
        @cpu = cpu
        @timeout = timeout
        @output = output
        @seat = seat
      end

      # @return [Finished]
      # @raise [CannotMeasure] there is no launcher for this Ruby, or no process can be started
      def call
        Tempfile.create("pitwall-errors") do |errors|
          reports = Array.new(2) { IO.pipe }
          # An interrupt before `follow`, which ends the process, would leave it behind.
          read = Thread.handle_interrupt(Object => :never) do
            pid = start(reports.map(&:last), errors)
            @seat&.started
            reports.each { |_, write| write.close }
            follow(pid, reports.map(&:first))
          end
          finished(read, errors)
        ensure
          reports&.flatten&.each { |io| io.close unless io.closed? }
        end
      end

      private

      # The launcher's own descriptor is one above the process's.
      def start(writers, errors)
        launcher = Pitwall.launcher or
          raise CannotMeasure, "pitwall-launch, which starts what is measured, is missing: run `gem install pitwall-core`, or script/setup in a checkout"

        Process.spawn(@env, launcher, (REPORT_FD + 1).to_s, @cpu.to_s, *@command,
                      in: File::NULL, out: @output, err: errors, chdir: @dir, pgroup: true,
                      REPORT_FD => writers[0], REPORT_FD + 1 => writers[1], **@seat&.descriptors.to_h)
      rescue SystemCallError => error
        raise CannotMeasure, "cannot start a process in #{@dir}: #{error.message}"
      end

      # Reads both reports until the launcher is gone. A process that the measured one left behind may keep its own open.
      def follow(pid, readers)
        read = readers.to_h { |io| [io, +""] }
        Thread.handle_interrupt(Object => :immediate) do
          deadline = clock + @timeout
          until readers.last.closed?
            remaining = deadline - clock
            break @timed_out = true if remaining <= 0

            ready, = IO.select(read.keys.reject(&:closed?), nil, nil, remaining)
            ready&.each { |io| take(io, read) }
          end
          take_rest(readers.first, read)
        end
        read.values
      ensure
        # What timed out or was interrupted is asked to end first; what it leaves behind after it has ended is not.
        ProcessGroup.finish(pid, grace: GRACE, ask: !readers.last.closed?)
      end

      def take(io, read)
        text = read[io]
        text << io.readpartial(65_536)
        io.close if text.bytesize > MOST_REPORTED
      rescue EOFError
        io.close
      end

      def take_rest(io, read)
        read[io] << io.read_nonblock(65_536) until io.closed?
      rescue IO::WaitReadable, EOFError
        nil
      end

      def finished(read, errors)
        child, launcher = read
        usage = launcher.split.to_h { |pair| pair.split("=", 2) }.transform_values(&:to_i)
        raise CannotMeasure, "cannot start a process: #{tail(errors)}" if usage.empty? && !@timed_out

        Finished.new(usage: usage.reject { |key, _| %w[exit signal error].include?(key) }, exit: usage["exit"], signal: usage["signal"], error: usage["error"],
                     lines: child.dup.force_encoding(Encoding::UTF_8).scrub.lines(chomp: true), errors: tail(errors), timed_out: @timed_out)
      end

      def tail(file)
        size = file.size
        file.pos = [size - TAIL, 0].max
        file.read.to_s.force_encoding(Encoding::UTF_8).scrub
      end

      def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
