# frozen_string_literal: true

module Pitwall
  module Analyse
    # Difference between two reports of system calls. Calls are counted exactly, so any difference is real.
    class SyscallChange
      # before, after: numbers of calls. markers_before, markers_after: numbers of markers, if the row is a pattern's.
      Row = Struct.new(:name, :before, :after, :markers_before, :markers_after) do
        # Additional calls; negative if there are fewer.
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

      # Totals: calls, explained, unexplained and failed ones.
      #: () -> Array[Row]
      def totals
        %i[calls explained unexplained failed].map do |name|
          Row.new(name.to_s, @before.public_send(name), @after.public_send(name))
        end
      end

      # Calls by the pattern that absorbed them, largest change first.
      #: () -> Array[Row]
      def passes
        both(@before.passes, @after.passes) { |pass| [pass.calls, pass.markers] }
      end

      # Calls by name, largest change first.
      #: () -> Array[Row]
      def by_call = both(@before.by_call, @after.by_call) { |row| [row.calls] }

      # Calls by gem: by the Ruby code that made them, or without stacks by their path.
      #: () -> Array[Row]
      def by_gem
        stacks = @before.stacks? && @after.stacks?
        both(*[@before, @after].map { |report| stacks ? report.by(:gem) : report.by_gem_of_path }) { |row| [row.calls] }
      end

      # Calls by line of Ruby code; empty without stacks.
      #: () -> Array[Row]
      def lines
        both(*[@before, @after].map { |report| report.lines.map { |line| named(line) } }) { |row| [row.calls] }
      end

      private

      Named = Struct.new(:name, :calls)
      private_constant :Named

      def named(line) = Named.new([line.path, line.line], line.calls)

      def both(before, after)
        names = (before + after).map(&:name).uniq
        by_name = [before, after].map { |rows| rows.to_h { |row| [row.name, row] } }
        rows = names.map do |name|
          a, b = by_name.map { |known| known[name] ? yield(known[name]) : [0, 0] }
          Row.new(name, a[0], b[0], a[1], b[1])
        end
        rows.reject! { |row| row.before.zero? && row.after.zero? }
        rows.sort_by { |row| [-row.change.abs, -row.before, row.name.to_s] }
      end
    end
  end
end
