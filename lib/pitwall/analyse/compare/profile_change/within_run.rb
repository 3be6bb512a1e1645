# frozen_string_literal: true

require "pitwall/analyse/statistics/statistics"
require "pitwall/record/chunks/samples"

module Pitwall
  module Analyse
    class ProfileChange
      # The noise of sampling within one recording. It does not include differences between runs.
      #
      # Consecutive samples are not independent. So the variance of a share is estimated in two ways, and the larger
      # estimate is used:
      # - By slices of time. A method's excess over its share is compared between neighbouring slices: half the mean
      #   squared difference (von Neumann). This includes clusters within a slice. It excludes phases of the program
      #   (load, then work), which would occur again.
      # - By events. A row of a recording is a visit at one stack, however many samples it lasted.
      #   Each visit counts as one event of a compound Poisson process, so the variance is the sum of the rows' squared
      #   weights. A hundred samples of one long call count as one event. The share is that of both sides together,
      #   because a share of 0 or 1 on one side would have no variance.
      #
      # Counts without times (imports) have no slices, and each count is one event.
      class WithinRun
        # Most slices of a recording.
        SLICES = 48
        # Fewest rows of a slice.
        ROWS = 8
        private_constant :SLICES, :ROWS

        # Sums of a slice. own, total: by the method's position in the list of numbers. whole: of all rows.
        Slice = Struct.new(:own, :total, :whole)
        private_constant :Slice

        # @param sides [Array<Array<Run>>]
        # @param numbers [Array<Integer>] numbers of the methods to be tested
        # @param parents [Array<Integer>, nil] by number: its parent's, if numbers are those of paths; parents are lower
        #: (Array[Array[Run]], Array[Integer], ?parents: Array[Integer]?) -> void
        def initialize(sides, numbers, parents: nil)
          @sides = sides.map { |runs| Noise.new(runs, numbers, parents) }
          @wholes = sides.map { |runs| Statistics.mean(runs.map(&:whole)) }
        end

        # Difference of a method's shares.
        # @param kind [Symbol] :own or :total
        #: (Symbol, Integer) -> Difference
        def difference(kind, number) = Difference.between(*parts(kind, number))

        # Difference of a method's weights in ns per recording: the shares times the recordings' weights.
        #: (Symbol, Integer) -> Difference
        def time(kind, number)
          scaled = parts(kind, number).zip(@wholes).map do |part, whole|
            Statistics::Parts.new(part.point * whole, part.standard_error * whole, part.degrees, part.n)
          end
          Difference.between(*scaled)
        end

        private

        def parts(kind, number)
          shared = @sides.sum { |noise| noise.share(kind, number) } / 2
          @sides.map { |noise| noise.part(kind, number, shared) }
        end

        # The noise of one side.
        class Noise
          def initialize(runs, numbers, parents)
            @positions = numbers.each_with_index.to_h
            @above = above(parents) if parents
            @slices = []
            @squares = sums
            @counts = runs.any? { |run| run.weight == :captures }
            rows = runs.sum { |run| run.parts.sum { |part| part.segment.row_count } }
            count = (rows / ROWS).clamp(2, SLICES)
            whole = runs.sum(&:whole)
            runs.each do |run|
              run.parts.each do |part|
                slices = (count * part.tree.total(run.weight).fdiv(whole)).round
                add(run, part, [slices, 1].max)
              end
            end
            @slices.reject! { |slice| slice.whole.zero? }
            @whole = @slices.sum(&:whole)
          end

          def share(kind, number)
            position = @positions.fetch(number)
            @whole.zero? ? 0.0 : @slices.sum { |slice| slice[kind][position] }.fdiv(@whole)
          end

          # The method's share on this side, with its standard error.
          # @param shared [Float] the method's share on both sides together
          # @return [Statistics::Parts]
          def part(kind, number, shared)
            share = share(kind, number)
            variance = [variance_by_slices(kind, number, share), variance_by_events(kind, number, shared)].max
            # Differences of neighbours overlap, which leaves two thirds of the degrees of freedom (von Neumann).
            degrees = @counts ? @whole - 1 : 2 * (@slices.size - 1) / 3.0
            Statistics::Parts.new(share, Math.sqrt(variance), [degrees, 1].max, @slices.size)
          end

          private

          def variance_by_slices(kind, number, share)
            return 0.0 if @counts
            return share * (1 - share) if @slices.size < 2

            position = @positions.fetch(number)
            excess = @slices.map { |slice| slice[kind][position] - share * slice.whole }
            squares = excess.each_cons(2).sum { |one, other| (other - one)**2 }
            squares * @slices.size / (2.0 * (@slices.size - 1) * @whole**2)
          end

          def variance_by_events(kind, number, share)
            return 0.0 if @whole.zero?

            inside = @squares[kind][@positions.fetch(number)]
            ((1 - share)**2 * inside + share**2 * (@squares.whole - inside)) / @whole**2
          end

          def add(run, part, count)
            slices = Array.new(count) { Hash.new(0) }
            squares = Hash.new(0)
            each_row(run, part, count) do |slice, node, weight|
              slices[slice][node] += weight
              squares[node] += @counts ? weight : weight * weight
            end
            outermost = outermost(part) unless @above
            @slices.concat(slices.map { |nodes| add_up(part, outermost, nodes, sums) })
            add_squares(add_up(part, outermost, squares, sums))
          end

          def add_squares(more)
            %i[own total].each { |kind| @squares[kind].map!.with_index { |sum, at| sum + more[kind][at] } }
            @squares.whole += more.whole
          end

          def sums = Slice.new(Array.new(@positions.size, 0), Array.new(@positions.size, 0), 0)

          # By number of a path: position of the nearest tested path at or above it; nil: none.
          def above(parents)
            above = []
            parents.each_with_index { |parent, number| above[number] = @positions[number] || above[parent] }
            @tops = @positions.map { |number, _| number.zero? ? nil : above[parents[number]] }
            above
          end

          # The same for paths: each node adds to the nearest tested path, and tested paths to those above them.
          def add_paths(part, nodes, sums)
            nodes.each do |node, weight|
              sums.whole += weight
              position = @above[part.keys[node]]
              sums.total[position] += weight if position
            end
            (@tops.size - 1).downto(0) { |at| sums.total[@tops[at]] += sums.total[at] if @tops[at] }
            sums
          end

          # Adds the weights of nodes to the sums of their methods. Recursion counts once.
          # @param outermost [Hash{Integer => Integer}] node → position of its method
          def add_up(part, outermost, nodes, sums)
            return add_paths(part, nodes, sums) if @above

            weights = Array.new(part.tree.size, 0)
            nodes.each do |node, weight|
              sums.whole += weight
              weights[node] = weight
              position = @positions[part.keys[node]]
              sums.own[position] += weight if position
            end
            below = part.tree.sum_up(weights)
            outermost.each { |node, position| sums.total[position] += below[node] }
            sums
          end

          # Nodes whose method is tested and not among their callers → position of the method.
          def outermost(part)
            keys = part.keys.map { |number| @positions[number] || @positions.size }
            nodes = part.tree.outermost(keys, @positions.size + 1)
            nodes.to_h { |node| [node, keys[node]] }.reject { |_, position| position == @positions.size }
          end

          # Yields slice, node and weight of each node with counts.
          def each_count(part)
            part.tree.selfs(:captures).each_with_index { |count, node| yield 0, node, count unless count.zero? }
          end

          # Yields slice, node and weight of each row. Rows of a thread have no gaps, so their sum is its clock.
          def each_row(run, part, count, &block)
            return each_count(part, &block) if @counts

            segment, inside = part.segment, part.inside
            unit, gap = segment.unit_ns, segment.gap
            clocks = Hash.new { |known, id| known[id] = segment.thread(id).start_ns }
            span = [span(segment), 1].max
            each_run(segment) do |rows, thread, label, range|
              counts = run.row?(segment, thread, label)
              nodes, walls, weights = rows.nodes, rows.wall, run.weight == :cpu ? rows.cpu : rows.wall
              clock = clocks[thread]
              range.each do |at|
                slice = clock * count / span
                clock += walls[at] * unit
                node, weight = nodes[at], weights[at]
                next if !counts || weight == 0 || node == gap

                node += 1 # as CallTreeBuilder numbers them
                yield slice < count ? slice : count - 1, node, weight * unit if inside.nil? || inside[node]
              end
              clocks[thread] = clock
            end
          end

          # Yields rows, thread, label and the range of each run of rows. Rows that were open at the end are last.
          def each_run(segment)
            segment.each_rows { |rows| rows.each_run { |*run| yield rows, *run } }
            open = segment.open_rows.map { |*row, label| [*row.first(5), 0, label.to_i] }
            Record::Rows.of(open).then { |rows| rows.each_run { |*run| yield rows, *run } }
          end

          def span(segment)
            walls = Hash.new { |known, id| known[id] = segment.thread(id).start_ns }
            segment.tallies.each do |tally|
              tally.each { |_, wall, _, _| walls[tally.thread_id] += wall * segment.unit_ns }
            end
            walls.each_value.max || 0
          end
        end
        private_constant :Noise
      end
    end
  end
end
