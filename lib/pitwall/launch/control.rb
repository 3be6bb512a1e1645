# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/launch"

module Pitwall
  class Launch
    # Runs the same command once more without the profiler, for an estimate of the profiler's cost. The second run's
    # output is discarded, so that it does not appear twice.
    class Control
      # with:    Launch::Finished of the run under the profiler
      # without: Launch::Finished of the run without it
      Difference = Struct.new(:with, :without, keyword_init: true) do
        #: () -> Float?
        def wall_ratio = ratio(:wall_ns)

        #: () -> Float?
        def cpu_ratio = ratio(:cpu_ns)

        private

        def ratio(clock) = without[clock].zero? ? nil : with[clock].fdiv(without[clock])
      end

      # Remembers the position of standard input. To be called before the measured run reads from it.
      # @raise [UsageError] standard input can't be read twice
      #: (Array[String], ?input: IO) -> void
      def initialize(command, input: $stdin)
        @command = command
        @input = input
        type = input.stat.ftype
        if %w[fifo socket].include?(type)
          raise UsageError, "--control runs the command twice, " \
                            "and standard input (a #{type}) can be read once: use < FILE"
        end

        @position = input.sysseek(0, IO::SEEK_CUR) if type == "file"
      end

      # Runs the command without the profiler.
      # @param measured [Finished] the run under the profiler
      # @return nil if one of the two runs was killed: it did not do all of the work
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
