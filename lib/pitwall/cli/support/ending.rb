# frozen_string_literal: true

module Pitwall
  module CLI
    # How the process of the command line should end: with a status, or by a signal.
    class Ending
      # @return [Integer] the exit status; 128 + N where the process should die of signal N
      attr_reader :status
      # @return [Integer, nil] the signal that should kill the process
      attr_reader :signal

      # A verb's return value as an Ending.
      #: (Integer | Ending) -> Ending
      def self.from(result) = result.is_a?(Ending) ? result : new(result)

      # An ending by a signal, given by number or by name: 2, "INT" or "SIGINT".
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

      # Ends the running process. Called by exe/pitwall only.
      #: () -> bot
      def leave
        die if signal
        exit(status)
      end

      private

      # Replaces this process by a shell that kills itself with the signal. Ruby can't do so itself: Ruby prints a crash
      # report for SEGV, BUS, ILL and some more. Core files are switched off: the shell's would overwrite the command's.
      def die
        Process.setrlimit(Process::RLIMIT_CORE, 0)
        exec("/bin/sh", "-c", "kill -#{signal} $$; exit #{status}")
      rescue SystemCallError
        nil
      end
    end
  end
end
