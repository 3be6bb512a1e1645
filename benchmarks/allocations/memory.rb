# frozen_string_literal: true

require_relative "../programs/many_sites"
require_relative "../support/result"
require_relative "../support/rounds"
require_relative "../support/statistics"

module Benchmarks
  module Allocations
    # How much memory following every object takes. The figure is the peak of a process that makes 10,000,000 objects
    # in 5,000 lines, minus the peak of a process that does the same without Pitwall. Both processes end with a full
    # collection. Pitwall needs one to find out what is retained, and Ruby's own memory for marking so many objects
    # must not count as Pitwall's.
    class Memory
      KINDS = %w[keep drop].freeze
      CASES = %w[none pitwall_objects pitwall_objects_stacks].freeze
      OBJECTS = 10_000_000
      ROUNDS = 3
      MOST = 64 << 20
      private_constant :KINDS, :CASES, :OBJECTS, :ROUNDS, :MOST

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        @cases = @context.available(CASES)
        series = KINDS.to_h { |kind| [kind, measure(kind)] }
        goals = (@cases - ["none"]).product(KINDS).map { |name, kind| goal(name, kind, series) }
        Result.new(tables: [table(series)], goals: goals, notes: @context.notes, data: series)
      end

      private

      def measure(kind)
        objects = @context.quick? ? Programs::ManySites::SITES : OBJECTS
        job = { measure: "memory", program: "many_sites", kind: kind, objects: objects }
        Rounds.take(@context, @cases, @context.rounds(ROUNDS)) do |name|
          @context.scratch(name) do |out|
            @context.child(profiler: name, out: (out unless name == "none"), collect: name == "none", **job)
          end
        end
      end

      def table(series)
        rows = series.flat_map do |kind, rounds|
          @cases.map do |name|
            found = %i[running stopped].map { |at| peaks(rounds, name, at) }
            bytes = [*found.map { |values| Statistics.median(values) if values.any? }, own(rounds, name)]
            [kind, name, *bytes.map { |number| number ? mb(number) : "–" }]
          end
        end
        headings = ["objects are", "case", "before the end", "after a last collection", "above none"]
        Table.new("Peak resident memory, MB (medians)", headings, rows)
      end

      def peaks(rounds, name, at = :stopped) = rounds.filter_map { |round| round[name]&.fetch(at) }

      # The process's own peak above that without Pitwall, of the medians.
      def own(rounds, name)
        with, without = [name, "none"].map { |one| peaks(rounds, one) }
        Statistics.median(with) - Statistics.median(without) unless name == "none" || with.empty? || without.empty?
      end

      def goal(name, kind, series)
        text = "#{name} takes at most #{MOST >> 20} MiB for #{OBJECTS / 1_000_000} million objects (#{kind})"
        bytes = own(series.fetch(kind), name)
        return Goal.not_measured(text) if bytes.nil? || @context.quick?

        Goal.new(text, format("%.1f MiB", bytes / 1048576.0), bytes <= MOST)
      end

      def mb(bytes) = format("%.1f", bytes / 1048576.0)
    end
  end
end
