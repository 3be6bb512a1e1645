# frozen_string_literal: true

module Pitwall
  module Bench
    # For a process that runs alone on its core.
    module NoTurns
      class << self
        def wait_for_turn; end

        def end_turn; end

        def without_waits(counters, _batches)
          counters
        end
      end
    end

    # For the processes of a block that run in turns (the host's bench/turns.rb): the process waits for a byte before
    # its turn, and writes a byte after its turn.
    class InTurns
      # @param take_fd [Integer] descriptor to read from; pass_fd: descriptor to write to
      def initialize(take_fd, pass_fd)
        @take, @pass = [take_fd, pass_fd].zip(%w[rb wb]).map { |number, mode| IO.for_fd(number, mode) }
        [@take, @pass].each { |io| io.close_on_exec = true }
        @byte = String.new(" ")
      end

      def wait_for_turn
        @take.sysread(1, @byte)
      rescue EOFError
        Process.exit!(70) # the host has given up this block
      end

      def end_turn
        @pass.syswrite(".")
      end

      # Takes out the voluntary switches that waiting for turns caused, one a batch.
      def without_waits(counters, batches)
        name = "voluntary_switches"
        counters.key?(name) ? counters.merge(name => [counters[name] - batches, 0].max) : counters
      end
    end
  end
end
