# frozen_string_literal: true

module Pitwall
  module CLI
    # How the process of the command line should end: with a status, or by a signal.
    class Ending
      # @return [Integer] what the process exits with; 128 + N where it should die of signal N
      attr_reader :status
      # @return [Integer, nil] the signal to die of
      attr_reader :signal

      #: (Integer | Ending) -> Ending
      def self.from(result) = result.is_a?(Ending) ? result : new(result)

      #: (String | Integer) -> Ending
      def self.killed_by(signal)
        number = signal.is_a?(Integer) ? signal : Signal.list.fetch(signal.to_s.delete_prefix("SIG"))
        new(128 + number, signal: number)
      end

      # The ending of a finished process.
      #: (Process::Status) -> Ending
      def self.of(process_status)
        process_status.signaled? ? killed_by(process_status.termsig) : new(process_status.exitstatus)
      end

      #: (Integer, ?signal: Integer?) -> void
      def initialize(status, signal: nil)
        @status = status
        @signal = signal
      end

      # Ends the running process so. Called by exe/pitwall only.
      #: () -> bot
      def leave
        die if signal
        exit(status)
      end

      private

      # Ruby reserves some signals (SEGV, BUS, ILL…) and prints a crash report when it meets them, so a shell takes
      # this process's place and dies. No core file: it would be the shell's, and hide the command's own.
      def die
        Process.setrlimit(Process::RLIMIT_CORE, 0)
        exec("/bin/sh", "-c", "kill -#{signal} $$; exit #{status}")
      rescue SystemCallError
        nil
      end
    end
  end
end
