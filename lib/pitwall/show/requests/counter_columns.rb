# frozen_string_literal: true

require "pitwall/record/vm_counter"
require "pitwall/show/caches/words"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Columns of the counters of the VM's caches, for tables of requests and tests. A counter that increased in no row
    # has no column.
    class CounterColumns
      # Heads of Pitwall's counters.
      OWN = { "constants_changed" => "set", "methods_changed" => "methods", "ancestors_changed" => "mixins",
              "classes_made" => "classes", "tracing_enabled" => "traces" }.freeze
      private_constant :OWN

      # @param rows [Array<Hash{String => Integer}>] increase by name, of each row that is shown
      #: (Analyse::WorkCounters, Array[Hash[String, Integer]]) -> void
      def initialize(counters, rows)
        @counters = counters
        @rows = rows
        @names = counters.names.select { |name| rows.any? { |row| row.fetch(name, 0).positive? } }
      end

      # Head of a counter's column: "class_serial" → "serials"
      #: (String) -> String
      def self.head(name) = OWN.fetch(name) { Record::VM_COUNTERS[name]&.short || name }

      # What columns count: "serials: class serials (method caches emptied); …"
      #: (Array[String]) -> String
      def self.legend(names) = names.map { |name| "#{head(name)}: #{CachesWords.counter(name)}" }.join("; ")

      #: () -> Array[String]
      def heads = @names.map { |name| CounterColumns.head(name) }

      # Cells of a row; empty where a counter is not known.
      #: (Hash[String, Integer]) -> Array[String]
      def cells(row) = @names.map { |name| row[name] ? Units.count(row[name]) : "" }

      # What the columns count, and what is not counted. "" has no such columns.
      #: () -> Array[String]
      def notes
        return [] unless @counters.any?

        notes = [legend]
        unknown = @rows.count { |row| (@counters.names & Record::STAT_COUNTERS).any? { |name| !row.key?(name) } }
        notes << "counters are the process's: #{unknown} of #{@rows.size} ran beside others" if unknown.positive?
        missing = @counters.not_counted
        notes << "not counted by this Ruby: #{missing.join(", ")}" unless missing.empty? || @names.empty?
        notes
      end

      private

      def legend
        @names.empty? ? "counters of the VM's caches: no increase" : CounterColumns.legend(@names)
      end
    end
  end
end
