# frozen_string_literal: true

require "pitwall/analyse/history/change_points"
require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    # A series of results and its changes, as views show it.
    #
    # series:  Hash of suite, benchmark, variant, metric, unit, better, host_id (nil: of all hosts), count
    # points:  Array of Hashes by time: run_id, measured_at, value, commit_id, ruby
    # changes: Array of Hashes by time: run_id, measured_at, before, after, ratio, p_value
    ResultSeries = Struct.new(:series, :points, :changes, keyword_init: true) do
      # Name of the method by which changes are found. A new name makes every series be analysed again.
      #: () -> String
      def self.method_name = "seeded ranks 1"

      # The change points of a series' points, in the form of `changes`.
      #: (Array[Hash[Symbol, untyped]]) -> Array[Hash[Symbol, untyped]]
      def self.changes_of(points)
        ChangePoints.of(points.map { |point| point[:value] }).map do |change|
          point = points[change.at]
          { run_id: point[:run_id], measured_at: point[:measured_at], before: change.before.to_f,
            after: change.after.to_f, ratio: change.ratio, p_value: change.p_value }
        end
      end

      # "search n=10"; with the suite and the variant where there are any.
      #: () -> String
      def name
        suite, benchmark, variant = series.values_at(:suite, :benchmark, :variant)
        "#{"#{suite}: " unless suite.empty?}#{benchmark}#{" [#{variant}]" unless variant.empty?}"
      end

      #: () -> Array[Float]
      def values = points.map { |point| point[:value] }

      #: () -> Hash[Symbol, untyped]?
      def newest = points.last

      #: () -> Hash[Symbol, untyped]?
      def last_change = changes.last

      # Whether a change is for the worse.
      #: (Hash[Symbol, untyped]) -> bool
      def worse?(change)
        higher = change[:after] > change[:before]
        series[:better] == "higher" ? !higher : higher
      end

      # Index of a change's first point among the points; nil where it is older than them.
      #: (Hash[Symbol, untyped]) -> Integer?
      def index(change) = points.index { |point| point[:run_id] == change[:run_id] }

      # Changes divide the points into parts. Each part has [index of its first point, its level]. If a change is older
      # than all points, the first part has the level after this change. Without a change the level is the median.
      #: () -> Array[[Integer, Float]]
      def levels
        return [] if points.empty?

        older, shown = changes.partition { |change| index(change).nil? }
        first = shown.any? ? shown.first[:before] : older.last&.fetch(:after) || Statistics.median(values)
        parts = [[0, first], *shown.map { |change| [index(change), change[:after]] }]
        parts.reverse.uniq(&:first).reverse
      end

      # The Ruby before a change and after it, where it is another one.
      #: (Hash[Symbol, untyped]) -> [String, String]?
      def rubies(change)
        at = index(change)
        return if at.nil? || at.zero?

        pair = [points[at - 1][:ruby], points[at][:ruby]]
        pair if pair.none?(&:nil?) && pair.uniq.size == 2
      end
    end
  end
end
