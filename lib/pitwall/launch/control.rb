# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/launch"

module Pitwall
  class Launch
    # The same command once more, without the profiler: what the profiler cost, roughly. Its output is thrown away,
    # since the command's own must not appear twice.
    class Control
      # `with` and `without`: both runs, as {Launch::Finished}.
      Difference = Struct.new(:with, :without, keyword_init: true) do
        #: () -> Float?
        def wall_ratio = ratio(:wall_ns)

        #: () -> Float?
        def cpu_ratio = ratio(:cpu_ns)

        private

        def ratio(clock) = without[clock].zero? ? nil : with[clock].fdiv(without[clock])
      end

      # Remembers where standard input stands, before the measured run reads it.
      # @raise [UsageError] when it can't be read twice
      #: (Array[String], ?input: IO) -> void
      def initialize(command, input: $stdin)
        @command = command
        @input = input
        type = input.stat.ftype
        raise UsageError, "--control runs the command twice, and standard input (a #{type}) can be read once: use < FILE" if %w[fifo socket].include?(type)

        @position = input.sysseek(0, IO::SEEK_CUR) if type == "file"
      end

      # Runs it.
      # @param measured [Finished] the run under the profiler
      # @return nil when either of the two was killed: it didn't do the whole work
      #: (Finished) -> Difference?
      def compare(measured)
        return if measured.status.signaled?

        @input.sysseek(@position) if @position
        without = Launch.new(@command, in: @input, out: File::NULL, err: File::NULL).call
        Difference.new(with: measured, without: without) unless without.status.signaled?
      end
    end
  end
end
