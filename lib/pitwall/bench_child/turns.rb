# frozen_string_literal: true

module Pitwall
  module Bench
    # Where the process has its core to itself.
    module NoTurns
      class << self
        def await; end

        def pass; end

        def without_waits(counters, _batches)
          counters
        end
      end
    end

    # The processes of a block take turns (the host's turns.rb): each waits for a byte, and says one when it is done.
    class InTurns
      def initialize(take, pass)
        @take, @pass = [take, pass].zip(%w[rb wb]).map { |number, mode| IO.for_fd(number, mode) }
        [@take, @pass].each { |io| io.close_on_exec = true }
        @byte = String.new(" ")
      end

      def await
        @take.sysread(1, @byte)
      rescue EOFError
        Process.exit!(70) # the host has given up this block
      end

      def pass
        @pass.syswrite(".")
      end

      # Each wait was one switch of our own making.
      def without_waits(counters, batches)
        name = "voluntary_switches"
        counters.key?(name) ? counters.merge(name => [counters[name] - batches, 0].max) : counters
      end
    end
  end
end
