# frozen_string_literal: true

require "pitwall"
require_relative "none"
require_relative "../method_totals"

module Benchmarks
  module Profilers
    class PitwallCase < NoneCase
      def initialize(mode:, collectors: {}, native: false, **rest)
        super(**rest)
        @settings = { mode: mode, collectors: collectors }
        @settings[:native] = true if native # other versions, which `versions/cost` runs, may not know it
        @settings[:interval_ns] = @interval_ns if @interval_ns.positive?
        # What it loads at the first start belongs to no measurement of a start.
        require "pitwall/collect/session"
      end

      def start = Pitwall.start(record: @out, **@settings)
      def stop = @counters = Pitwall.stop.counters
      def ticks = @counters.fetch(:ticks)
      # @return [Hash{Symbol => Integer}] of the last recording
      attr_reader :counters

      # { method => CPU of its own }
      def leaves = rows.each_with_object(Hash.new(0)) { |row, found| found[row[:labels].last || "-"] += row[:cpu] }

      # { frame next to the root => samples }
      def roots
        recording.segments.each_with_object(Hash.new(0)) do |segment, found|
          first = Array.new(segment.parents.size) # by node: the node next to the root
          (1...first.size).each { |node| first[node] = first[segment.parents[node]] || node }
          segment.tallies.each do |tally|
            tally.each do |node, _wall, _cpu, captures|
              found[node.zero? ? "-" : segment.frame(first[node]).name] += captures
            end
          end
          found.delete_if { |_name, captures| captures.zero? }
        end
      end

      def totals
        stacks = rows
        { "wall" => MethodTotals.of(stacks.map { |row| row.values_at(:labels, :wall) }),
          "cpu" => MethodTotals.of(stacks.map { |row| row.values_at(:labels, :cpu) }) }
      end

      def thread_cpu_ns
        rows.group_by { |row| row[:native_id] }.transform_values { |mine| mine.sum { |row| row[:cpu] } }
      end

      # { "path:line class" => objects allocated } of the program's places
      def sites
        require "pitwall/analyse"
        Pitwall::Analyse::Allocations.new(recording.segments).rows.reject(&:special)
                                     .to_h { |row| ["#{row.path}:#{row.line} #{row[:class]}", row.count.to_i] }
      end

      private

      # Every stack of every thread with its weights in ns.
      def rows
        @rows ||= recording.segments.flat_map do |segment|
          labels = Hash.new do |known, node|
            known[node] = node.zero? ? [] : known[segment.parents[node]] + [segment.frame(node).name]
          end
          segment.tallies.flat_map do |tally|
            native_id = segment.thread(tally.thread_id).native_id
            tally.enum_for(:each).map do |node, wall, cpu, _captures|
              { native_id: native_id, labels: labels[node], wall: wall * segment.unit_ns, cpu: cpu * segment.unit_ns }
            end
          end
        end
      end

      def recording
        require "pitwall/record"
        Pitwall::Record.read(@out)
      end
    end
  end
end
