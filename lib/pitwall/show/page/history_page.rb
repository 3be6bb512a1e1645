# frozen_string_literal: true

require "time"
require "pitwall/show/compare/provenance"
require "pitwall/show/history/words"
require "pitwall/show/page/page"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # The page of a project's history: its series, and for each a chart of its results and a table of its changes. Words
    # and cells are those of the text view, so that page and terminal agree.
    class HistoryPage
      # Significant digits of a drawn value.
      DIGITS = 7
      private_constant :DIGITS

      # @param hosts by their id, as {History::Store#hosts} returns them
      #: (Array[Analyse::ResultSeries], project: String, ?hosts: Hash[String, Hash[Symbol, untyped]]) -> void
      def initialize(found, project:, hosts: {})
        @found = found
        @project = project
        @hosts = hosts
      end

      # The page's HTML.
      #: () -> String
      def to_s = Page.new(data).to_s

      # The page's data.
      # @api private
      #: () -> PageData
      def data
        title = "History of #{@project}"
        data = PageData.new(title: "#{title} · Pitwall")
        series = @found.map { |one| series(one, data) }
        data.object = { "schema" => "pitwall/page-1", "kind" => "history", "title" => title, "facts" => facts,
                        "hosts" => hosts, "times" => runs.map { |run| seconds(run) },
                        "commits" => commits, "commit" => data.column(indexes(commits, :commit_id)),
                        "rubies" => rubies, "ruby" => data.column(indexes(rubies, :ruby)),
                        "series" => series, "version" => VERSION }
        data
      end

      private

      def facts
        ids = @found.map { |one| one.series[:host_id] }.uniq
        [("host #{HistoryWords.host(ids.first)}" if ids.size == 1), "#{Units.count(@found.size)} series",
         Units.things(@found.sum { |one| one.points.size }, "result"),
         Units.things(@found.sum { |one| one.changes.size }, "change point"), span].compact
      end

      # "2026-03-01 to 2026-08-27"
      def span
        days = runs.map { |run| run[:measured_at].slice(0, 10) }.minmax.uniq.compact
        days.join(" to ") unless days.empty?
      end

      def hosts
        @found.filter_map { |one| one.series[:host_id] }.uniq.to_h { |id| [id, Provenance.host(@hosts[id])] }
      end

      # A run is named once, though many series have a result of it.
      def runs = @runs ||= @found.flat_map(&:points).uniq { |point| point[:run_id] }

      def run_index = @run_index ||= runs.each_with_index.to_h { |run, at| [run[:run_id], at] }

      def commits = @commits ||= runs.map { |run| run[:commit_id].to_s }.uniq
      def rubies = @rubies ||= runs.map { |run| run[:ruby].to_s }.uniq

      def indexes(names, key)
        at = names.each_with_index.to_h
        runs.map { |run| at.fetch(run[key].to_s) }
      end

      def seconds(point) = Time.iso8601(point[:measured_at]).to_i

      def series(one, data)
        described = one.series
        { "name" => one.name, "metric" => HistoryWords.metric(described[:metric]), "unit" => described[:unit],
          "host" => HistoryWords.host(described[:host_id]), "better" => described[:better],
          "count" => described[:count], "newest" => HistoryWords.value(one.newest&.fetch(:value), described[:unit]),
          "runs" => data.column(one.points.map { |point| run_index.fetch(point[:run_id]) }),
          "values" => numbers(one, :value), "lows" => numbers(one, :low), "highs" => numbers(one, :high),
          "levels" => one.levels, "changes" => one.changes.map { |change| change(one, change) } }
      end

      # nil if no point has such a number.
      def numbers(one, key)
        numbers = one.points.map { |point| point[key] && Float(format("%.#{DIGITS}g", point[key])) }
        numbers if numbers.any?
      end

      # at: index of the first point at the new level; nil if the change is older than all points
      def change(one, change)
        at = one.index(change)
        before, after = change.values_at(:before, :after).map { |level| HistoryWords.value(level, one.series[:unit]) }
        rubies = one.rubies(change)
        { "at" => at, "time" => seconds(change), "since" => HistoryWords.time(change[:measured_at]),
          "commit" => at && one.points[at][:commit_id], "before" => before, "after" => after,
          "ratio" => change[:ratio], "change" => HistoryWords.change(change[:ratio]), "worse" => one.worse?(change),
          "p_value" => change[:p_value], "p" => HistoryWords.doubt(change[:p_value]),
          "ruby" => rubies && rubies.map { |ruby| HistoryWords.short(ruby) }.join(" → ") }
      end
    end
  end
end
