# frozen_string_literal: true

module Pitwall
  module Analyse
    # What sampling by signals costs the threads it interrupts while they wait. A Ruby that tells no thread states has all threads
    # interrupted alike, and the kernel counts that as CPU time of the thread: the sleeper seems to do something.
    #
    # Taken off it can't be: what a row has of its own, nobody told. But of a stack at which there was next to no CPU time between
    # ticks, nearly all that there is, is theirs.
    #
    # ns: CPU time at such stacks · ticks: how many it was spread over · share: of all CPU time sampled
    TickCost = Struct.new(:ns, :ticks, :share)

    class TickCost
      # A stack counts with so many ticks at least, and with no more than that share of its wall time, and of CPU time a tick.
      TICKS = 20
      MOST_CPU = 0.1
      MOST_TICK_NS = 30_000
      private_constant :TICKS, :MOST_CPU, :MOST_TICK_NS

      #: (Array[Record::Segment]) -> TickCost
      def self.of(segments)
        ns = ticks = all = 0
        segments.select { |segment| segment.header.mode == "signal" }.each do |segment|
          unit = segment.unit_ns
          segment.tallies.each do |tally|
            tally.each do |_, wall, cpu, captures|
              all += cpu * unit
              next if captures < TICKS || cpu > wall * MOST_CPU || cpu * unit > captures * MOST_TICK_NS

              ns += cpu * unit
              ticks += captures
            end
          end
        end
        new(ns, ticks, all.zero? ? 0.0 : ns.fdiv(all))
      end
    end
  end
end
