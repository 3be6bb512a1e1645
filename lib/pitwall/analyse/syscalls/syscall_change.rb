# frozen_string_literal: true

module Pitwall
  module Analyse
    # From one report of system calls to another: what there is less of, and more. Counts, so what differs is different.
    class SyscallChange
      # name; figures of both; a marker's row has markers too
      Row = Struct.new(:name, :before, :after, :markers_before, :markers_after) do
        #: () -> Integer
        def change = after - before
      end

      # @return [SyscallReport]
      attr_reader :before, :after

      #: (SyscallReport, SyscallReport) -> void
      def initialize(before, after)
        @before = before
        @after = after
      end

      # Totals: calls, explained, not, failed.
      #: () -> Array[Row]
      def totals = %i[calls explained unexplained failed].map { |name| Row.new(name.to_s, @before.public_send(name), @after.public_send(name)) }

      # Calls that each pattern absorbed, the greatest change first.
      #: () -> Array[Row]
      def passes
        both(@before.passes, @after.passes) { |pass| [pass.calls, pass.markers] }
      end

      # Calls by their name, the greatest change first.
      #: () -> Array[Row]
      def by_call = both(@before.by_call, @after.by_call) { |row| [row.calls] }

      # By gem whose Ruby made them, or whose files they were about.
      #: () -> Array[Row]
      def by_gem
        stacks = @before.stacks? && @after.stacks?
        both(*[@before, @after].map { |report| stacks ? report.by(:gem) : report.by_gem_of_path }) { |row| [row.calls] }
      end

      # Lines of Ruby whose calls changed; empty without stacks.
      #: () -> Array[Row]
      def lines = both(@before.lines.map { |line| named(line) }, @after.lines.map { |line| named(line) }) { |row| [row.calls] }

      private

      Named = Struct.new(:name, :calls)
      private_constant :Named

      def named(line) = Named.new([line.path, line.line], line.calls)

      def both(before, after)
        names = (before + after).map(&:name).uniq
        was, is = [before, after].map { |rows| rows.to_h { |row| [row.name, row] } }
        rows = names.map do |name|
          a, b = [was[name], is[name]].map { |row| row ? yield(row) : [0, 0] }
          Row.new(name, a[0], b[0], a[1], b[1])
        end
        rows.reject { |row| row.before.zero? && row.after.zero? }.sort_by { |row| [-row.change.abs, -row.before, row.name.to_s] }
      end
    end
  end
end
