# frozen_string_literal: true

require "pitwall/record/import/call_graph"

module Pitwall
  module Record
    module Import
      # Call paths of a CallGraph. The graph doesn't tell them: a function that two others call may do different things
      # for each. The estimate assumes that it does the same for all: what a function used, itself and in each function
      # it calls, is split among the paths that lead to it, in proportion to what was used there.
      #
      # Without recursion, the total of each function and of each call stays what the file says. Where functions call
      # each other in circles, each call is once on a path, and totals are estimates, too. Two estimates are made then:
      # calls in the circle get their share of what passes through the caller, or are served first, because only what
      # passes on in the circle can come back to the caller. The one whose totals are nearer to the file's calls is
      # taken. Paths with little weight are
      # left out, and their functions' figures go to the other paths of these functions. Each function is on one path at
      # least.
      # @api private
      class CallTreeEstimate
        # A path: its function, the number of the path without that function (nil at the root), and what share of each
        # figure passes through it.
        Path = Struct.new(:parent, :function, :weights, :depth)

        # The smallest share of the whole that a path has, unless the path is its function's first.
        SMALLEST = 1e-5
        # Paths, beside each function's first, and calls that are looked at for them.
        PATHS = 20_000
        CALLS = 2_000_000
        # Functions of the longest path.
        DEPTH = 500
        private_constant :SMALLEST, :PATHS, :CALLS, :DEPTH

        #: (CallGraph) -> void
        def initialize(graph)
          @graph = graph
          @selfs = Array.new(graph.size) { |function| graph.self_of(function) }
          @circles = graph.circles
          @sizes = @circles.tally
          @whole = Array.new(graph.width) { |at| [@selfs.sum { |own| own[at] }, 1].max.to_f }
        end

        # The paths. A path comes after its parent.
        #: () -> Array[Path]
        def paths
          return @found ||= find(false) unless recursive?

          @found ||= [false, true].map { |deep| find(deep) }.min_by { |paths| distance(paths) }
        end

        # Whether functions call each other in circles.
        #: () -> bool
        def recursive? = @sizes.any? { |_, size| size > 1 }

        private

        # @param deep [Boolean] whether calls in circles are served first
        def find(deep)
          @deep = deep
          @left = @continued = nil
          @paths = []
          @heap = []
          @seen = Array.new(@selfs.size, false)
          @calls = 0
          roots.each { |function, weights| push(nil, function, weights, 1) }
          expand
          add_unreached
          @paths
        end

        # How far the totals of functions in circles are from what they and their callees used: the sum of the
        # differences, each as a share of that.
        def distance(paths)
          sums = Hash.new { |found, function| found[function] = Array.new(@graph.width, 0.0) }
          paths.each_with_index do |path, number|
            next if !circle?(path.function) || within_itself?(paths, number)

            path.weights.each_with_index { |weight, at| sums[path.function][at] += weight }
          end
          sums.sum do |function, totals|
            inclusive(function).each_with_index.sum do |exact, at|
              exact > @whole[at] ? 0.0 : (exact - totals[at]).abs / @whole[at]
            end
          end
        end

        def within_itself?(paths, number)
          function = paths[number].function
          while (number = paths[number].parent)
            return true if paths[number].function == function
          end
          false
        end

        # What passes through a function: its own and what its callees used.
        def inclusive(function)
          @graph.callees(function).each_with_object(@selfs[function].map(&:to_f)) do |(callee, edge), sums|
            next if callee == function

            edge.values.each_with_index { |value, at| sums[at] += value }
          end
        end

        # Functions that nothing calls, and those that use more than all calls to them did, with the rest. Inclusive
        # figures of functions in a circle count several times, so they tell of no rest.
        def roots
          called = Array.new(@selfs.size) { Array.new(@graph.width, 0) }
          known = Array.new(@selfs.size, false)
          @selfs.each_index do |function|
            @graph.callees(function).each do |callee, edge|
              next if callee == function

              known[callee] = true
              edge.values.each_with_index { |value, at| called[callee][at] += value }
            end
          end
          @selfs.each_index.filter_map do |function|
            rest = inclusive(function).zip(called[function]).map { |sum, of_calls| [sum - of_calls, 0].max }
            more = rest.any?(&:positive?) && @sizes[@circles[function]] == 1
            [function, rest] if !known[function] || more
          end
        end

        # The heaviest paths are continued first.
        def expand
          while (number = pop)
            path = @paths[number]
            next if path.depth >= DEPTH

            callees = callees(number, path)
            next if callees.empty?

            split(path, callees).each { |callee, weights| push(number, callee, weights, path.depth + 1) }
          end
        end

        # Callees to continue a path with. A call within a circle is once on a path. When enough was looked at, only
        # callees that are on no path count.
        def callees(number, path)
          found = @graph.callees(path.function)
          return found if found.empty?

          enough = @calls > CALLS || @paths.size > PATHS + @seen.size
          return {} if enough && @continued&.key?(path.function)

          (@continued ||= {})[path.function] = true
          @calls += found.size
          made = circle?(path.function) ? calls_made(number, path.function) : {}
          found.reject { |callee, _| callee == path.function || made.key?(callee) || (enough && @seen[callee]) }
        end

        def circle?(function) = @sizes[@circles[function]] > 1

        # Callees that the function called already on the way.
        def calls_made(number, function)
          found = {}
          while (parent = @paths[number].parent)
            found[@paths[number].function] = true if @paths[parent].function == function
            number = parent
          end
          found
        end

        # Callee → its part of the path's weights.
        def split(path, callees)
          return circle_first(path, callees) if @deep && circle?(path.function)

          parts = shares(path.function, path.weights, callees)
          circle?(path.function) ? within_circle(path.function, callees, parts) : parts
        end

        # Each callee's part in proportion to what the function and these callees used.
        def shares(function, weights, callees)
          sums = @selfs[function].map(&:to_f)
          callees.each_value { |edge| edge.values.each_with_index { |value, at| sums[at] += value } }
          callees.transform_values do |edge|
            edge.values.each_with_index.map do |value, at|
              sums[at].positive? ? weights[at] * value / sums[at] : 0.0
            end
          end
        end

        # Callees in the circle take what their calls are from being accounted for, and the rest is split.
        def circle_first(path, callees)
          function, rest = path.function, path.weights.dup
          inside = callees.keys.select { |callee| @circles[callee] == @circles[function] }
          inside.sort_by! { |callee| [-share(left(function, callee)), callee] }
          parts = inside.to_h { |callee| [callee, take(left(function, callee), rest)] }
          parts.merge(shares(function, rest, callees.reject { |callee, _| parts.key?(callee) }))
        end

        # In a circle, a function is on a path for different reasons: Array#each calls a block at the top, and another
        # one far below. The parts of its callees in the circle are given to those first whose calls are furthest from
        # being accounted for.
        def within_circle(function, callees, parts)
          inside = callees.keys.select { |callee| @circles[callee] == @circles[function] }
          return parts if inside.empty?

          flow = Array.new(@graph.width) { |at| inside.sum { |callee| parts[callee][at] } }
          left = inside.to_h { |callee| [callee, left(function, callee)] }
          inside.sort_by { |callee| [-share(left[callee]), callee] }.each do |callee|
            parts[callee] = take(left[callee], flow)
          end
          flow.each_with_index { |rest, at| parts[inside.first][at] += rest if rest.positive? }
          parts
        end

        # What of a call's figures is on no path yet.
        def left(function, callee)
          (@left ||= {})[[function, callee]] ||= @graph.callees(function)[callee].values.map(&:to_f)
        end

        # Moves as much as possible, and returns it.
        def take(left, flow)
          left.each_index.map do |at|
            taken = [left[at], flow[at]].min
            left[at] -= taken
            flow[at] -= taken
            taken
          end
        end

        # Functions that no path reached: those that only call each other, and those behind very long paths.
        def add_unreached
          left = @seen.each_index.reject { |function| @seen[function] }
          left.sort_by! { |function| [-share(inclusive(function)), function] }
          left.each do |function|
            next if @seen[function]

            push(nil, function, inclusive(function), 1)
            expand
          end
        end

        def share(weights) = weights.each_with_index.map { |weight, at| weight / @whole[at] }.max || 0.0

        def push(parent, function, weights, depth)
          share = share(weights)
          return if @seen[function] && (share < SMALLEST || @paths.size >= PATHS + @seen.size)

          @seen[function] = true
          @paths << Path.new(parent, function, weights, depth)
          insert([-share, @paths.size - 1])
        end

        # A binary heap: the least entry is the first.
        def insert(entry)
          at = @heap.size
          @heap << entry
          while at.positive? && (entry <=> @heap[above = (at - 1) / 2]).negative?
            @heap[at] = @heap[above]
            at = above
          end
          @heap[at] = entry
        end

        # The number of the heaviest path.
        def pop
          first = @heap.first or return
          last = @heap.pop
          sink(last) unless @heap.empty?
          first.last
        end

        def sink(entry)
          at = 0
          while (below = 2 * at + 1) < @heap.size
            below += 1 if below + 1 < @heap.size && (@heap[below + 1] <=> @heap[below]).negative?
            break unless (@heap[below] <=> entry).negative?

            @heap[at] = @heap[below]
            at = below
          end
          @heap[at] = entry
        end
      end
      private_constant :CallTreeEstimate
    end
  end
end
