# frozen_string_literal: true

module Pitwall
  module Bench
    # Reads clocks and counters around batches of iterations. Each batch has one value of each.
    class Meter
      attr_reader :pid, :wall, :cpu, :objects, :gc_runs, :gc_time

      def initialize(batches)
        @wall, @cpu, @objects, @gc_runs, @gc_time = Array.new(5) { Array.new(batches, 0) }
        @gc = GC
        @process = Process
        @monotonic = Process::CLOCK_MONOTONIC
        @cpu_clock = Process::CLOCK_PROCESS_CPUTIME_ID
        @pid = Process.pid
        @times_gc = GC.respond_to?(:total_time)
        find_heaps
        @slots = Array.new(batches) { Array.new(@heaps, 0) }
        @slots_before = Array.new(@heaps, 0)
      end

      # Runs a batch of `times` iterations. Its values go to position `index` of the arrays.
      # @return [Integer] its wall time, ns
      def take(index, work, times)
        gc = @gc
        process = @process
        monotonic = @monotonic
        cpu_clock = @cpu_clock
        times_gc = @times_gc
        heaps = @heaps
        slots_before = @slots_before
        clear(index)
        while times > 0
          now = work.prepare(times)
          heap = 0
          while heap < heaps
            slots_before[heap] = gc.stat_heap(heap, :total_allocated_objects)
            heap = heap.succ
          end
          objects = gc.stat(:total_allocated_objects)
          gc_runs = gc.count
          gc_time = times_gc ? gc.total_time : 0
          cpu = process.clock_gettime(cpu_clock, :nanosecond)
          wall = process.clock_gettime(monotonic, :nanosecond)
          work.run(now)
          wall -= process.clock_gettime(monotonic, :nanosecond)
          cpu -= process.clock_gettime(cpu_clock, :nanosecond)
          gc_time -= times_gc ? gc.total_time : 0
          gc_runs -= gc.count
          objects -= gc.stat(:total_allocated_objects)
          heap = 0
          while heap < heaps
            @slots[index][heap] -= slots_before[heap] - gc.stat_heap(heap, :total_allocated_objects)
            heap = heap.succ
          end
          @wall[index] -= wall
          @cpu[index] -= cpu
          @gc_time[index] -= gc_time
          @gc_runs[index] -= gc_runs
          @objects[index] -= objects
          times -= now
        end
        work.release
        # A child that the case forked ends here, so that it measures nothing.
        process.exit!(0) if process.pid != @pid
        @wall[index]
      end

      # Bytes of heap slots that the objects of each batch took. Memory that objects hold by malloc is not counted.
      def bytes
        return @objects.map { |objects| objects * @slot_sizes.first } if @heaps.zero?

        @slots.map { |slots| slots.zip(@slot_sizes).sum { |objects, size| objects * size } }
      end

      private

      def clear(index)
        @wall[index] = @cpu[index] = @objects[index] = @gc_runs[index] = @gc_time[index] = 0
        @slots[index].fill(0)
      end

      # Ruby 3.3 and newer count the objects of each slot size in a heap of its own.
      def find_heaps
        sizes = GC.respond_to?(:stat_heap) ? GC.stat_heap : {}
        counted = sizes.any? && sizes.values.all? { |heap| heap[:total_allocated_objects] && heap[:slot_size] }
        constants = GC.const_defined?(:INTERNAL_CONSTANTS) ? GC::INTERNAL_CONSTANTS : {}
        one_size = constants[:BASE_SLOT_SIZE] || constants[:RVALUE_SIZE] || 40
        @slot_sizes = counted ? sizes.keys.sort.map { |heap| sizes[heap][:slot_size] } : [one_size]
        @heaps = counted ? @slot_sizes.size : 0
      end
    end
  end
end
