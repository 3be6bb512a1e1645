# frozen_string_literal: true

require "pitwall/record/malformed"

module Pitwall
  module Record
    module Import
      # Functions with the figures of their own, and calls between them. Formats without stacks consist of this. The
      # figures are lists, one number for each event of the file.
      # @api private
      class CallGraph
        # Functions that a file may have.
        FUNCTIONS = 1_000_000
        # Calls from one function to another, all lines together. `calls` is how many there were, 0 unknown.
        Edge = Struct.new(:line, :calls, :values)
        private_constant :FUNCTIONS

        # @return [Integer] figures of each function
        attr_reader :width

        #: (Integer) -> void
        def initialize(width)
          @width = width
          @own = {}
          @edges = {}
        end

        # Adds to what a function used itself.
        # @param function [Integer] from 0
        #: (Integer, Integer, Array[Integer]) -> void
        def own(function, line, values)
          add(know(function)[line] ||= Array.new(@width, 0), values)
        end

        # Adds calls: `values` is what the callee used, with all that it called.
        # @param line [Integer] the running line of the caller
        #: (Integer, Integer, Integer, Array[Integer], ?calls: Integer) -> void
        def edge(caller, callee, line, values, calls: 0)
          know(caller)
          know(callee)
          edge = (@edges[caller] ||= {})[callee] ||= Edge.new(line, 0, Array.new(@width, 0))
          edge.calls += calls
          add(edge.values, values)
        end

        # @return [Integer] numbers of functions are below
        def size = (@own.keys.max || -1) + 1

        # Line → figures of a function's own.
        #: (Integer) -> Hash[Integer, Array[Integer]]
        def lines(function) = @own.fetch(function, {})

        # Figures of a function's own, of all lines.
        #: (Integer) -> Array[Integer]
        def self_of(function)
          lines(function).each_value.with_object(Array.new(@width, 0)) { |values, sum| add(sum, values) }
        end

        # Callee → its edge.
        #: (Integer) -> Hash[Integer, Edge]
        def callees(function) = @edges.fetch(function, {})

        # The circle of each function: functions that call each other, over whatever others, have the same number.
        # Two walks over all calls: the second one goes from callee to caller, from the last that the
        # first one ended with.
        #: () -> Array[Integer]
        def circles
          callers = Array.new(size) { [] }
          size.times { |function| callees(function).each_key { |callee| callers[callee] << function } }
          ended = []
          walk(0...size, ->(function) { callees(function).keys }) { |function, _| ended << function }
          found = Array.new(size)
          walk(ended.reverse, callers.method(:[])) { |function, start| found[function] = start }
          found
        end

        private

        # Yields each function when all that it leads to is done, with the function at which the walk started.
        def walk(starts, following)
          seen = Array.new(size, false)
          starts.each do |start|
            next if seen[start]

            seen[start] = true
            open = [[start, following.call(start).dup]]
            until open.empty?
              function, left = open.last
              step = left.pop
              if step.nil?
                open.pop
                yield function, start
              elsif !seen[step]
                seen[step] = true
                open << [step, following.call(step).dup]
              end
            end
          end
        end

        def know(function)
          @own[function] ||= begin
            raise Malformed, "has more than #{FUNCTIONS} functions" if @own.size >= FUNCTIONS

            {}
          end
        end

        def add(sums, values) = values.each_with_index { |value, at| sums[at] += value }
      end
      private_constant :CallGraph
    end
  end
end
