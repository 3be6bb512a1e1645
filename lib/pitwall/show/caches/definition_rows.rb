# frozen_string_literal: true

require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # What definitions of methods cost: rows and sentences for text and Markdown.
    class DefinitionRows
      HEADS = ["total", "methods", "late", "one takes", "visits", "reaches", "paths", "repeated"].freeze
      LINE_HEADS = %w[total methods].freeze
      MOST_NAMES = 3 # modules named beside a line
      private_constant :MOST_NAMES

      # @return [Array<Analyse::Definitions::Row>] rows to be shown
      attr_reader :rows
      # @return [Array<Analyse::Definitions::Line>]
      attr_reader :lines

      #: (Analyse::Definitions, limit: Integer) -> void
      def initialize(definitions, limit:)
        @definitions = definitions
        @rows = definitions.rows.first(limit)
        @lines = definitions.lines.first(limit)
        @left_out = definitions.rows.size - @rows.size
      end

      #: () -> String
      def title = "Defining methods on modules and classes"

      #: () -> Array[String]
      def notes
        words = ["Measured when the program had ended: a definition on a module that nothing mixes in takes " \
                 "#{Units.duration(@definitions.alone_ns)}.",
                 "late: defined after the module was first mixed in. Only these are charged the module's own time. " \
                 "They are charged the reach at the end, so the total is an upper bound. What callers lose when " \
                 "their caches are empty is not in it.", counters]
        words << "#{Units.things(@left_out, "more module")}." if @left_out.positive?
        words
      end

      # The increase of the VM's counters.
      #: () -> String
      def counters
        all = @definitions.rows.flat_map { |row| row.cost.counters.to_a }
        most = all.group_by(&:first).transform_values { |pairs| pairs.map(&:last).max }.select { |_, by| by.positive? }
        return "A definition increases no counter of this Ruby (RubyVM.stat)." if most.empty?

        "A definition increases #{most.map { |name, by| "#{name} by up to #{by}" }.join(", ")}."
      end

      # Figures in the order of HEADS.
      #: (Analyse::Definitions::Row) -> Array[String]
      def figures(row)
        cost = row.cost
        [row.total_ns ? Units.duration(row.total_ns) : "", Units.count(row.definitions), Units.count(row.late),
         cost.ns ? Units.duration(cost.ns) : "", *[cost.entries, cost.reaches, cost.paths, cost.repeated]
           .map { |number| Units.count(number) }]
      end

      # "Shop::Helpers (not measured: frozen)"
      #: (Analyse::Definitions::Row) -> String
      def name(row)
        cost = row.cost
        cost.not_measured ? "#{cost.name} (not measured: #{cost.not_measured})" : cost.name
      end

      # Figures in the order of LINE_HEADS.
      #: (Analyse::Definitions::Line) -> Array[String]
      def line_figures(line) = [Units.duration(line.total_ns), Units.count(line.definitions)]

      # "Shop::Helpers, Shop::Paths and 3 more"
      #: (Analyse::Definitions::Line) -> String
      def line_name(line) = Analyse::SomeNames.of(line.modules, MOST_NAMES)
    end
  end
end
