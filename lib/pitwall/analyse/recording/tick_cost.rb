# frozen_string_literal: true

module Pitwall
  module Analyse
    # CPU time that sampling by signals costs waiting threads.
    #
    # A Ruby without thread states has all threads interrupted, also waiting ones. The kernel counts the handler as CPU
    # time of the thread, so a waiting thread seems to work.
    # This cost cannot be subtracted, because a row does not show which part of its CPU time is the thread's own.
    # But at a stack with almost no CPU time between ticks, nearly all CPU time is the cost of ticks.
    #
    # ns:    CPU time at such stacks
    # ticks: number of ticks at such stacks
    # share: ns as a share of all sampled CPU time, 0.0 to 1.0
    TickCost = Struct.new(:ns, :ticks, :share)

    class TickCost
      # Fewest ticks at a stack for the stack to count.
      TICKS = 20
      # Largest CPU time of a waiting stack, as a share of the stack's wall time.
      MOST_CPU = 0.1
      # Largest CPU time of such a stack per tick.
      MOST_TICK_NS = 30_000
      private_constant :TICKS, :MOST_CPU, :MOST_TICK_NS

      # The cost in all segments.
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
