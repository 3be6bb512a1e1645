# frozen_string_literal: true

require "tempfile"
require "pitwall/errors"
require "pitwall/native"
require "pitwall/launch/process_group"
require "pitwall/version"

module Pitwall
  module Bench
    # One process under measurement. The launcher (ext/pitwall/launcher) starts it on one core. It is ended, with all
    # processes that it started, when it takes too long or when Pitwall is interrupted.
    class Execution
      # usage: {"wall" => 12_000_000, "max_rss" => 9_000_000, …}, from the launcher: wall, user, system (ns), max_rss
      #            (bytes), faults, switches…
      # lines:     what the process wrote to its report descriptor
      # exit:      exit status, or nil
      # signal:    number of the signal that ended the process, or nil
      # error:     errno of an exec that failed, or nil
      # errors:    the end of the process's standard error
      # timed_out: whether the process took too long
      Finished = Struct.new(:usage, :lines, :exit, :signal, :error, :errors, :timed_out, keyword_init: true) do
        # Whether the process ended by itself with status 0.
        def success? = exit.eql?(0) && !timed_out
      end

      STDERR_BYTES = 4_096 # the end of standard error that is kept for the message of a failure
      GRACE_S = 0.5 # from asking a process to end to killing it
      REPORT_FD = 3 # the report descriptor in the process
      MAX_REPORT_BYTES = 8 << 20 # a report usually has some kilobytes
      private_constant :STDERR_BYTES, :GRACE_S, :MAX_REPORT_BYTES

      # @param command [Array<String>] it writes its report to descriptor REPORT_FD
      # @param cpu [Integer] core to run on; -1: any
      # @param timeout [Numeric] seconds
      # @param output where its standard output goes
      # @param seat [Turns::Seat, nil] for a process that runs in turns with others
      #: (Array[String], ?env: Hash[String, String?], ?dir: String, ?cpu: Integer, ?timeout: Numeric,
      #:   ?output: IO | String, ?seat: Turns::Seat?) -> void
      def initialize(command, env: {}, dir: Dir.pwd, cpu: -1, timeout: 60, output: File::NULL, seat: nil)
        @command = command
        @env = env
        @dir = dir
        @cpu = cpu
        @timeout = timeout
        @output = output
        @seat = seat
      end

      # Runs the process to its end.
      # @return [Finished]
      # @raise [CannotMeasure] there is no launcher for this Ruby, or no process can be started
      def call
        Tempfile.create("pitwall-errors") do |errors|
          reports = Array.new(2) { IO.pipe }
          # An interrupt between `start` and `follow`, which ends the process, would leave the process behind.
          texts = Thread.handle_interrupt(Object => :never) do
            pid = start(reports.map(&:last), errors)
            @seat&.started
            reports.each { |_, write| write.close }
            follow(pid, reports.map(&:first))
          end
          finished(texts, errors)
        ensure
          reports&.flatten&.each { |io| io.close unless io.closed? }
        end
      end

      private

      # The launcher writes its own report to the descriptor above the process's.
      def start(writers, errors)
        launcher = Pitwall.launcher or
          raise CannotMeasure, "pitwall-launch, which starts the measured process, is missing: " \
                               "run `gem install pitwall-core`, or script/setup in a checkout"

        Process.spawn(@env, launcher, (REPORT_FD + 1).to_s, @cpu.to_s, *@command,
                      in: File::NULL, out: @output, err: errors, chdir: @dir, pgroup: true,
                      REPORT_FD => writers[0], REPORT_FD + 1 => writers[1], **@seat&.descriptors.to_h)
      rescue SystemCallError => error
        raise CannotMeasure, "cannot start a process in #{@dir}: #{error.message}"
      end

      # Reads both reports until the launcher has closed its own. A process that the measured one left behind may keep
      # the measured process's report open.
      # @return [Array<String>] the process's report and the launcher's
      def follow(pid, readers)
        texts = readers.to_h { |io| [io, +""] }
        Thread.handle_interrupt(Object => :immediate) do
          deadline = clock + @timeout
          until readers.last.closed?
            remaining = deadline - clock
            break @timed_out = true if remaining <= 0

            ready, = IO.select(texts.keys.reject(&:closed?), nil, nil, remaining)
            ready&.each { |io| read(io, texts) }
          end
          read_rest(readers.first, texts)
        end
        texts.values
      ensure
        # After a timeout or an interrupt the process is asked to end. After its own end, what it left behind is killed.
        ProcessGroup.finish(pid, grace: GRACE_S, ask: !readers.last.closed?)
      end

      def read(io, texts)
        text = texts[io]
        text << io.readpartial(65_536)
        io.close if text.bytesize > MAX_REPORT_BYTES
      rescue EOFError
        io.close
      end

      def read_rest(io, texts)
        texts[io] << io.read_nonblock(65_536) until io.closed?
      rescue IO::WaitReadable, EOFError
        nil
      end

      def finished(texts, errors)
        report, launcher_report = texts
        usage = launcher_report.split.to_h { |pair| pair.split("=", 2) }.transform_values(&:to_i)
        raise CannotMeasure, "cannot start a process: #{last_bytes(errors)}" if usage.empty? && !@timed_out

        Finished.new(usage: usage.reject { |key, _| %w[exit signal error].include?(key) }, exit: usage["exit"],
                     signal: usage["signal"], error: usage["error"], errors: last_bytes(errors), timed_out: @timed_out,
                     lines: report.dup.force_encoding(Encoding::UTF_8).scrub.lines(chomp: true))
      end

      def last_bytes(file)
        file.pos = [file.size - STDERR_BYTES, 0].max
        file.read.to_s.force_encoding(Encoding::UTF_8).scrub
      end

      def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
