# frozen_string_literal: true

require "etc"
require "pitwall/analyse"

module Pitwall
  module CLI
    # Long logs are read by several processes, each a part of the file that no pattern reaches out of; their reports are
    # added up.
    module SyscallWorkers
      MOST = 4
      # Objects that a long log is read with room for: the collector then runs a fifth as often.
      ROOM = 250_000
      private_constant :MOST, :ROOM

      module_function

      # @param log [Record::SyscallLog]
      #: (Record::SyscallLog, Analyse::SyscallPatterns) -> Analyse::SyscallReport
      def report(log, patterns)
        prepare if log.long?
        processors = [Etc.nprocessors, MOST].min
        parts = [log]
        if processors > 1 && Process.respond_to?(:fork)
          parts = log.parts(processors) { |name| patterns.separator?(name) }
        end
        return Analyse::SyscallReport.of(log, patterns: patterns) if parts.size < 2

        together(log, parts, patterns)
      end

      # @api private
      def prepare
        Array.new(ROOM) { Object.new }
        RubyVM::YJIT.enable if defined?(RubyVM::YJIT) && RubyVM::YJIT.respond_to?(:enable) && !RubyVM::YJIT.enabled?
      end

      # @api private
      def together(log, parts, patterns)
        others = parts.drop(1).map { |part| start(part, patterns) }
        report = Analyse::SyscallReport.of(parts.first, patterns: patterns)
        log.add(parts.first.losses)
        others.each do |pid, reader|
          part, losses = finish(pid, reader)
          report.merge(part)
          log.add(losses)
        end
        report
      ensure
        others&.each { |pid, reader| stop(pid) unless reader.closed? }
      end

      # @api private
      def start(part, patterns)
        reader, writer = IO.pipe
        pid = fork do
          reader.close
          writer.binmode
          Marshal.dump([Analyse::SyscallReport.of(part, patterns: patterns).part, part.losses], writer)
          writer.close
          exit!(0)
        rescue Exception # rubocop:disable Lint/RescueException -- the parent says what it means that nothing came
          exit!(1)
        end
        writer.close
        [pid, reader]
      end

      # Marshal: from our own child, over a pipe of our own.
      # @api private
      def finish(pid, reader)
        data = reader.binmode.read
        reader.close
        Process.wait(pid)
        if data.empty? || !$?.success?
          raise CannotMeasure, "a process that read a part of the log ended early#{" (out of memory?)" if $?.signaled?}"
        end

        Marshal.load(data) # rubocop:disable Security/MarshalLoad
      end

      # @api private
      def stop(pid)
        Process.kill(:KILL, pid)
        Process.wait(pid)
      rescue Errno::ESRCH, Errno::ECHILD
        nil
      end
    end
    private_constant :SyscallWorkers
  end
end
