# frozen_string_literal: true

require "vernier"
require_relative "none"
require_relative "../method_totals"

module Benchmarks
  module Profilers
    class VernierCase < NoneCase
      # @param every [Integer, nil] objects between two whose stacks are taken
      def initialize(every: nil, **rest)
        super(**rest)
        @settings = every ? { allocation_interval: every } : { interval: @interval_ns / 1000 }
      end

      def start
        @collector = Vernier::Collector.new(:wall, **@settings, **(@out ? { out: @out } : {}))
        @collector.start
      end

      def stop = @result = @collector.stop

      # Its own thread looks at every thread in turn.
      def ticks = main[:weights].sum
      def totals = { "wall" => MethodTotals.of(stacks) }

      private

      def main = @result.main_thread
      # A program with threads of its own is compared below their root, so all threads may be put together.
      def stacks
        table = @result.stack_table
        labels = Hash.new do |known, stack|
          frames = table.full_stack(stack)
          known[stack] = frames.map { |id| table.func_name(table.frame_func_idx(table.stack_frame_idx(id))) }
        end
        @result.threads.values.flat_map do |thread|
          thread[:samples].zip(thread[:weights]).map { |stack, weight| [labels[stack], weight] }
        end
      end
    end
  end
end
