# frozen_string_literal: true

require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    class ProfileChange
      # The noise of sampling within one recording, as far as one recording can tell: not what differs from run to run.
      #
      # Samples that follow each other are no independent draws, so two estimates are made of how far a share of the time is
      # in doubt, and the larger one counts:
      # - the recording is cut into slices of time, and a method's excess over its share is compared from one slice
      #   to the next (half the mean squared difference, after von Neumann): what clusters within a slice is in it, and
      #   the phases of a program (load, then work), which would come again, are not;
      # - each row of a recording, which is a visit at one stack however many samples it lasted, counts as one event that
      #   could as well not have come: the variance is the sum of the squares of what rows weigh (a compound Poisson process).
      #   So a hundred samples of one long call count as one, not as a hundred. The share is that of both sides together, for
      #   one that is 0 or 1 on its own side would be beyond doubt.
      class WithinRun
        # Slices of a recording, and rows that one has at least.
        SLICES = 48
        ROWS = 8
        private_constant :SLICES, :ROWS

        # Sums of a slice of time: own and total by the methods' places in the list, whole: of everything.
        Slice = Struct.new(:own, :total, :whole)
        private_constant :Slice

        # @param sides [Array<Array<Run>>]
        # @param numbers [Array<Integer>] of the methods that will be asked for
        #: (Array[Array[Run]], Array[Integer]) -> void
        def initialize(sides, numbers)
          @sides = sides.map { |runs| Noise.new(runs, numbers) }
          @wholes = sides.map { |runs| Statistics.mean(runs.map(&:whole)) }
        end

        #: (Symbol, Integer) -> Difference
        def difference(kind, number) = Difference.between(*parts(kind, number))

        # The same in ns a recording: how long one is, is known.
        #: (Symbol, Integer) -> Difference
        def time(kind, number)
          scaled = parts(kind, number).zip(@wholes).map { |part, whole| Statistics::Parts.new(part.point * whole, part.standard_error * whole, part.degrees, part.n) }
          Difference.between(*scaled)
        end

        private

        def parts(kind, number)
          shared = @sides.sum { |noise| noise.share(kind, number) } / 2
          @sides.map { |noise| noise.part(kind, number, shared) }
        end

        # Of one side.
        class Noise
          def initialize(runs, numbers)
            @places = numbers.each_with_index.to_h
            @slices = []
            @squares = sums
            rows = runs.sum { |run| run.parts.sum { |part| part.segment.row_count } }
            count = (rows / ROWS).clamp(2, SLICES)
            whole = runs.sum(&:whole)
            runs.each { |run| run.parts.each { |part| add(run, part, [(count * part.tree.total(run.weight).fdiv(whole)).round, 1].max) } }
            @slices.reject! { |slice| slice.whole.zero? }
            @whole = @slices.sum(&:whole)
          end

          def share(kind, number)
            place = @places.fetch(number)
            @whole.zero? ? 0.0 : @slices.sum { |slice| slice[kind][place] }.fdiv(@whole)
          end

          # @param shared [Float] the method's share on both sides together
          # @return [Statistics::Parts] of its share here
          def part(kind, number, shared)
            share = share(kind, number)
            variance = [slicewise(kind, number, share), eventwise(kind, number, shared)].max
            # Two thirds of the differences' number is what their overlap leaves (von Neumann's statistic).
            Statistics::Parts.new(share, Math.sqrt(variance), [2 * (@slices.size - 1) / 3.0, 1].max, @slices.size)
          end

          private

          def slicewise(kind, number, share)
            return share * (1 - share) if @slices.size < 2

            place = @places.fetch(number)
            excess = @slices.map { |slice| slice[kind][place] - share * slice.whole }
            excess.each_cons(2).sum { |one, other| (other - one)**2 } * @slices.size / (2.0 * (@slices.size - 1) * @whole**2)
          end

          def eventwise(kind, number, share)
            return 0.0 if @whole.zero?

            inside = @squares[kind][@places.fetch(number)]
            ((1 - share)**2 * inside + share**2 * (@squares.whole - inside)) / @whole**2
          end

          def add(run, part, count)
            slices = Array.new(count) { Hash.new(0) }
            squares = Hash.new(0)
            each_row(run, part, count) do |slice, node, weight|
              slices[slice][node] += weight
              squares[node] += weight * weight
            end
            paths = paths(part)
            @slices.concat(slices.map { |nodes| add_up(part, paths, nodes, sums) })
            add_up(part, paths, squares, @squares)
          end

          def sums = Slice.new(Array.new(@places.size, 0), Array.new(@places.size, 0), 0)

          # Adds what nodes weigh to what their methods do.
          def add_up(part, paths, nodes, sums)
            total = sums.total
            nodes.each do |node, weight|
              sums.whole += weight
              place = @places[part.keys[node]]
              sums.own[place] += weight if place
              paths[node].each { |above| total[above] += weight }
            end
            sums
          end

          # By node the places of the methods on its path, each once; nodes that add none share their parent's.
          def paths(part)
            paths = [[]]
            parents = part.tree.parents
            (1...part.tree.size).each do |node|
              above = paths[parents[node]]
              place = @places[part.keys[node]]
              paths << (place && !above.include?(place) ? above + [place] : above)
            end
            paths
          end

          # Rows of a thread leave no gap, so their running sum is its clock. What was open at the end comes last.
          def each_row(run, part, count)
            segment = part.segment
            clocks = Hash.new { |known, id| known[id] = segment.thread(id).start_ns }
            span = [span(segment), 1].max
            row = lambda do |thread, node, wall, cpu, label|
              at = [clocks[thread] * count / span, count - 1].min
              clocks[thread] += wall * segment.unit_ns
              node += 1 # as CallTreeBuilder numbers them
              next unless run.row?(segment, thread, label.to_i) && (part.inside.nil? || part.inside[node])

              weight = (run.weight == :cpu ? cpu : wall) * segment.unit_ns
              yield at, node, weight unless weight.zero?
            end
            segment.each_rows { |rows| rows.each { |thread, _, node, wall, cpu, _, label| row.call(thread, node, wall, cpu, label) } }
            segment.open_rows.each { |thread, _, node, wall, cpu, label| row.call(thread, node, wall, cpu, label) }
          end

          def span(segment)
            walls = Hash.new { |known, id| known[id] = segment.thread(id).start_ns }
            segment.tallies.each { |tally| tally.each { |_, wall, _, _| walls[tally.thread_id] += wall * segment.unit_ns } }
            walls.each_value.max || 0
          end
        end
        private_constant :Noise
      end
    end
  end
end
