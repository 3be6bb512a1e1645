# frozen_string_literal: true

require_relative "samples"

# Slow, obvious answers to what Analyse::Filters works out on trees. A row is a Row; a stack is a list of
# [name, path, first line, line, kind] from the root to the leaf, an empty one could not be read.
module Oracle
  # Rows of a thread stand in the order of time. wall and cpu are in units.
  Row = Struct.new(:segment, :thread, :state, :stack, :wall, :cpu, :captures)

  module Filters
    NO_STACK = ["(no stack)", "", 0, 0, 4].freeze
    OTHER = ["(other code)", "", 0, 0, 4].freeze
    NATIVE = ["(native code)", "", 0, 0, 4].freeze
    GC = ["(garbage collection)", "", 0, 0, 2].freeze

    module_function

    # The parts of the rows from one moment up to, but not including, another, in units of one clock for all segments.
    # Each row is taken apart into its units: unit i of n has what lies between i/n and (i + 1)/n, rounded down, of the rest.
    # @param starts {[segment, thread] => units}
    def time(rows, starts, from, to)
      clocks = starts.dup
      rows.filter_map do |row|
        began = clocks[[row.segment, row.thread]]
        clocks[[row.segment, row.thread]] += row.wall
        next (row if began >= from && (to.nil? || began < to)) if row.wall.zero?

        units = (0...row.wall).select { |unit| began + unit >= from && (to.nil? || began + unit < to) }
        next if units.empty?

        share = ->(whole) { units.sum { |unit| whole * (unit + 1) / row.wall - whole * unit / row.wall } }
        row.dup.tap { |part| part.wall, part.cpu, part.captures = units.size, share.call(row.cpu), share.call(row.captures) }
      end
    end

    def focus(rows, names) = rows.select { |row| row.stack.any? { |frame| names.include?(frame[0]) } }

    def hide(rows, names) = keep(rows) { |frame| !names.include?(frame[0]) }

    # Garbage collection stays.
    def only(rows) = keep(rows) { |frame| frame[4] == 2 || yield(frame) }

    def keep(rows)
      rows.map do |row|
        next row if row.stack.empty?

        stack = row.stack.select { |frame| yield(frame) }
        row.dup.tap { |copy| copy.stack = stack.empty? ? [OTHER] : stack }
      end
    end

    # Native frames folded, in processes that have others.
    def native(rows)
      folds = rows.group_by(&:segment).transform_values do |group|
        group.any? { |row| row.stack.any? { |frame| frame[4] < 2 } }
      end
      rows.map do |row|
        next row if row.stack.empty? || !folds[row.segment]

        stack = row.stack.reject { |frame| frame[4] == 3 }
        row.dup.tap { |copy| copy.stack = stack.empty? ? [NATIVE] : stack }
      end
    end

    # Garbage collection apart, or charged to what ran; where nothing ran, it stays.
    def gc(rows, how)
      rows.map do |row|
        next row if how == :happened || row.stack.empty? || row.stack.last[4] != 2

        stack = row.stack.dup
        stack.pop while stack.any? && stack.last[4] == 2
        stack = [row.stack.first] if stack.empty?
        row.dup.tap { |copy| copy.stack = how == :apart ? [GC] : stack }
      end
    end

    def blackbox(rows, names)
      rows.map do |row|
        at = row.stack.index { |frame| names.include?(frame[0]) }
        at ? row.dup.tap { |copy| copy.stack = row.stack[0..at] } : row
      end
    end

    # [[stack, weight], …] for Oracle's sums.
    def weighed(rows, weight) = rows.map { |row| [row.stack.empty? ? [NO_STACK] : row.stack, row[weight]] }
  end
end
