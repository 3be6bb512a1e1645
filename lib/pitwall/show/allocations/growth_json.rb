# frozen_string_literal: true

require "json"

module Pitwall
  module Show
    # Growing objects as a JSON object. Unknown values are null. Rates are per minute, with a 99% interval.
    # `judged` tells whether there was enough data to judge growth; if not, `losses` has the reason.
    # A site's `living` has rows of [at_ns, lowest, highest]; a process's has rows of [at_ns, objects].
    class ObjectGrowthJson
      SCHEMA = "pitwall/growth-1"

      #: (Analyse::ObjectGrowth, Analyse::Summary, ?limit: Integer?, ?warnings: Array[untyped],
      #:  ?findings: Array[untyped]) -> void
      def initialize(growth, summary, limit: nil, warnings: [], findings: [])
        @growth = growth
        @summary = summary
        @limit = limit
        @warnings = warnings
        @findings = findings
      end

      # The JSON text, without a newline at its end.
      #: () -> String
      def to_s = JSON.generate(to_h)

      # The JSON object.
      # @api private
      #: () -> Hash[String, untyped]
      def to_h
        header = @summary.headers.first
        { "schema" => SCHEMA, "findings" => @findings, "judged" => @growth.judged?,
          "sites" => ObjectGrowthJson.sites(@growth, @limit), "processes" => ObjectGrowthJson.processes(@growth),
          "rule" => ObjectGrowthWords::RULE, "program" => @summary.programs.first,
          "elapsed_ns" => @summary.elapsed_ns, "ruby" => header&.ruby || {}, "host" => header&.host || {},
          "settings" => header&.settings || {}, "pids" => @summary.headers.map(&:pid),
          "losses" => @growth.losses, "notes" => @summary.notes, "warnings" => @warnings }
      end

      # The objects of growing sites, also used by the page.
      #: (Analyse::ObjectGrowth, ?Integer?) -> Array[Hash[String, untyped]]
      def self.sites(growth, limit = nil)
        rows = limit ? growth.rows.first(limit) : growth.rows
        rows.map do |row|
          { "path" => row.path, "line" => row.line, "class" => row.class_name, "method" => row[:method],
            "objects_per_minute" => rate(row.per_minute), "bytes_per_minute" => row.bytes_per_minute,
            "objects" => row.objects, "bytes" => row.bytes, "living_objects" => row.living,
            "rss_share" => row.rss_share&.round(4), "released" => row.released, "processes" => row.processes,
            "pid" => row.segment.header.pid, "holders" => row.paths, "living" => row.series }
        end
      end

      # The objects of processes, also used by the page.
      #: (Analyse::ObjectGrowth) -> Array[Hash[String, untyped]]
      def self.processes(growth)
        growth.processes.map do |process|
          { "pid" => process.segment.header.pid, "points" => process.points.size, "judged" => process.judged.size,
            "full" => process.full, "warm_up_ns" => process.warm_up_ns, "rss" => process.rss,
            "rss_per_minute" => rate(process.rss_per_minute), "living" => process.living }
        end
      end

      def self.rate(estimate)
        estimate&.point && { "point" => estimate.point.round(1), "low" => estimate.low&.round(1),
                             "high" => estimate.high&.round(1), "level" => estimate.level }
      end
      private_class_method :rate
    end
  end
end
