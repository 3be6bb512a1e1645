# frozen_string_literal: true

require "pitwall/analyse"

module Pitwall
  module History
    # Keeps the change points of a project up to date: only series with new results are analysed.
    module Analysis
      # The newest results of a series that are analysed.
      MOST = 1000

      module_function

      # @param series ids; nil: all of the project
      #: (Store, String, ?series: Array[String]?) -> void
      def update(store, project, series: nil)
        method = Analyse::ResultSeries.method_name
        store.unanalysed(project, method, series: series).each do |row|
          id, host, count = row.values_at(:series_id, :host_id, :count)
          points = store.points(project, id, host: host, last: MOST)
          store.keep_analysis(project, id, host, method: method, count: count,
                                                 changes: Analyse::ResultSeries.changes_of(points))
        end
      end

      # Series with their newest results and their changes.
      # @param rows what {Store#series} returns; a host_id of nil is of all hosts
      #: (Store, String, Array[Hash[Symbol, untyped]], last: Integer) -> Array[Analyse::ResultSeries]
      def load(store, project, rows, last:)
        kept = store.change_points(project, series: rows.map { |row| row[:series_id] }.uniq)
                    .group_by { |change| change.values_at(:series_id, :host_id) }
        rows.map do |row|
          points = store.points(project, row[:series_id], host: row[:host_id], last: row[:host_id] ? last : MOST)
          changes = row[:host_id] ? kept.fetch(row.values_at(:series_id, :host_id), []) : nil
          Analyse::ResultSeries.new(series: row, points: points.last(last),
                                    changes: changes || Analyse::ResultSeries.changes_of(points))
        end
      end
    end
  end
end
