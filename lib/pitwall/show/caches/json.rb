# frozen_string_literal: true

require "json"

module Pitwall
  module Show
    # Lines that empty caches, as a JSON object. `own_counters` names the counters that Pitwall keeps, because Ruby has
    # none. The count of a finding is the part of its counter's increase.
    class CachesJson
      SCHEMA = "pitwall/caches-1"

      #: (Analyse::Caches, Analyse::Summary, ?limit: Integer?, ?warnings: Array[untyped]) -> void
      def initialize(caches, summary, limit: nil, warnings: [])
        @caches = caches
        @summary = summary
        @limit = limit
        @warnings = warnings
      end

      # The JSON text, without a newline at its end.
      #: () -> String
      def to_s = JSON.generate(to_h)

      # @api private
      #: () -> Hash[String, untyped]
      def to_h
        header = @summary.headers.first
        { "schema" => SCHEMA, "counters" => @caches.counters, "own_counters" => Analyse::Caches::OWN.keys,
          "not_counted" => @caches.not_counted, "findings" => findings, "total" => @caches.total,
          "blamed" => @caches.blamed, "pitwall" => @caches.own, "unblamed" => @caches.unblamed,
          "lost" => @caches.lost, "after" => after, "program" => @summary.programs.first,
          "ruby" => header&.ruby || {}, "host" => header&.host || {}, "pids" => @summary.headers.map(&:pid),
          "warnings" => @warnings }
      end

      private

      def after
        return "boot" if @caches.after.boot

        @caches.after.works
      end

      def findings
        rows = @caches.findings
        rows = rows.first(@limit) if @limit
        rows.map do |row|
          { "counter" => row.counter, "kind" => row.kind, "path" => row.path, "line" => row.line,
            "subject" => row.subject, "count" => row.count, "first_ns" => row.first_ns,
            "stack" => @caches.stack(row).map { |frame| %w[name path line].zip(frame).to_h } }
        end
      end
    end
  end
end
