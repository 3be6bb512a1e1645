# frozen_string_literal: true

require "pitwall/record/import/call_tree_estimate"

module Pitwall
  module Record
    module Import
      # Writes the stacks of a CallGraph, estimated by CallTreeEstimate. The figures of each function and line stay
      # exact: whole numbers are split among the function's paths, so that the parts add up.
      # @api private
      class CallPaths
        WARNING = "has calls, but no call paths: what a function used is split among its callers by what each call " \
                  "used (an estimate; figures of functions and lines are exact)"
        # What HEAD says.
        ESTIMATED = "estimated"
        NOTE = "call paths are estimates, as the file has calls only; self figures are exact"
        # The weights' sum in whole numbers.
        UNIT = 1 << 60
        RECURSIVE = "functions call each other in circles: totals of callers are estimates, too"
        private_constant :NOTE, :UNIT, :RECURSIVE

        #: (CallGraph) -> void
        def initialize(graph)
          @graph = graph
          @estimate = CallTreeEstimate.new(graph)
        end

        # For the recording.
        #: () -> Array[String]
        def notes = [NOTE, (RECURSIVE if @estimate.recursive?)].compact

        # Yields the nodes of the segment that have figures.
        # @param frames [Array<Integer>] the segment's frame of each function
        # @yield [Integer, Array<Integer>, Integer] node, own figures, calls
        #: (SegmentWriter, Array[Integer]) { (Integer, Array[Integer], Integer) -> void } -> void
        def each(segment, frames)
          @segment = segment
          @frames = frames
          @paths = @estimate.paths
          @above = []
          by_function = @paths.each_index.group_by { |number| @paths[number].function }
          by_function.each { |function, numbers| split_lines(function, numbers) { |*found| yield(*found) } }
          split_calls(by_function) { |number, calls| yield(leaf(number, 0), Array.new(@graph.width, 0), calls) }
        end

        private

        # The node of the path without its last function; its lines are those of the calls.
        def above(number)
          @above[number] ||= begin
            missing = [number]
            missing << @paths[missing.last].parent while @paths[missing.last].parent && !@above[missing.last]
            missing.reverse_each { |one| @above[one] ||= above_one(@paths[one]) }
            @above[number]
          end
        end

        def above_one(path)
          return 0 if path.parent.nil?

          line = @graph.callees(@paths[path.parent].function)[path.function].line
          @segment.node(@above[path.parent], @frames[@paths[path.parent].function], line)
        end

        def leaf(number, line) = @segment.node(above(number), @frames[@paths[number].function], line)

        def split_lines(function, numbers)
          @graph.lines(function).each do |line, values|
            parts = values.each_with_index.map do |value, at|
              split(value, numbers.map { |number| @paths[number].weights[at] })
            end
            numbers.each_with_index do |number, at|
              own = parts.map { |part| part[at] }
              yield leaf(number, line), own, 0 if own.any?(&:positive?)
            end
          end
        end

        # Calls of an edge are split among the paths that end with it. Calls of folded recursion go to all paths.
        def split_calls(by_function)
          sums = Array.new(@paths.size, 0)
          @graph.size.times do |caller|
            @graph.callees(caller).each do |callee, edge|
              next if edge.calls.zero?

              all = by_function.fetch(callee)
              numbers = ending_with(caller, callee, all)
              numbers = all if numbers.empty?
              parts = split(edge.calls, numbers.map { |number| @paths[number].weights.first })
              numbers.each_with_index { |number, at| sums[number] += parts[at] }
            end
          end
          sums.each_with_index { |calls, number| yield number, calls if calls.positive? }
        end

        def ending_with(caller, callee, all)
          ((@ending ||= {})[callee] ||= by_caller(all)).fetch(caller, [])
        end

        def by_caller(numbers)
          numbers.group_by { |number| @paths[number].parent && @paths[@paths[number].parent].function }
        end

        # Whole parts that add up to the value: those with the largest remainders are rounded up. Weights become whole
        # numbers first, as a value may have more digits than a Float.
        def split(value, weights)
          return [value] if weights.size == 1
          return Array.new(weights.size, 0) if value.zero?

          sum = weights.sum
          even = !sum.positive? || !sum.finite?
          exact = weights.map { |weight| value * (even ? UNIT / weights.size : (weight / sum * UNIT).to_i) }
          parts = exact.map { |part| part / UNIT }
          correct(parts, exact, value - parts.sum)
        end

        def correct(parts, exact, rest)
          return take_back(parts, -rest) if rest.negative?

          order = exact.each_index.sort_by { |at| [-(exact[at] % UNIT), at] }
          each, more = rest.divmod(parts.size)
          order.each_with_index { |at, rank| parts[at] += rank < more ? each + 1 : each }
          parts
        end

        def take_back(parts, too_many)
          parts.map do |part|
            taken = [part, too_many].min
            too_many -= taken
            part - taken
          end
        end
      end
      private_constant :CallPaths
    end
  end
end
