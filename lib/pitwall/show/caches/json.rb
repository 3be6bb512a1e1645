# frozen_string_literal: true

require "json"
require "pitwall/show/caches/words"

module Pitwall
  module Show
    # Lines that empty caches, as a JSON object. `own_counters` names the counters that Pitwall keeps, because Ruby has
    # none. The count of a finding is the part of its counter's increase.
    class CachesJson
      SCHEMA = "pitwall/caches-1"

      # @param proofs [Hash{Symbol => Array<String>}] commands by group of CachesWords
      #: (Analyse::Caches, Analyse::Summary, ?limit: Integer?, ?warnings: Array[untyped], **untyped) -> void
      def initialize(caches, summary, limit: nil, warnings: [], proofs: {})
        @caches = caches
        @proofs = proofs
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
          "not_counted" => @caches.not_counted, "findings" => findings, "definitions" => definitions,
          "total" => @caches.total,
          "blamed" => @caches.blamed, "pitwall" => @caches.own, "unblamed" => @caches.unblamed,
          "order" => CachesWords.order(@caches), "proofs" => @proofs.transform_keys(&:to_s),
          "lost" => @caches.lost, "after" => after, "program" => @summary.programs.first,
          "ruby" => header&.ruby || {}, "host" => header&.host || {}, "pids" => @summary.headers.map(&:pid),
          "warnings" => @warnings }
      end

      private

      # Findings with what their changes cost, in the order of the changes.
      def ordered
        same = @caches.findings.group_by { |row| [row.kind, row.path, row.line, row.subject] }
        @caches.changes.flat_map do |row, counts|
          figures = @caches.figures(row, counts)
          same.fetch([row.kind, row.path, row.line, row.subject]).map { |finding| [finding, figures] }
        end
      end

      def after
        return "boot" if @caches.after.boot

        @caches.after.works
      end

      # nil: not asked for.
      def definitions
        found = @caches.definitions
        return unless found.any?

        { "alone_ns" => found.alone_ns, "modules" => found.rows.map { |row| definition(row) },
          "lines" => found.lines.map do |line|
            { "path" => line.path, "line" => line.line, "definitions" => line.definitions,
              "total_ns" => line.total_ns, "modules" => line.modules }
          end }
      end

      def definition(row)
        cost = row.cost
        { "name" => cost.name, "kind" => cost.kind, "definitions" => row.definitions, "late" => row.late,
          "total_ns" => row.total_ns, "ns" => cost.ns, "not_measured" => cost.not_measured, "entries" => cost.entries,
          "reaches" => cost.reaches, "paths" => cost.paths, "repeated" => cost.repeated, "counters" => cost.counters }
      end

      def findings
        rows = ordered
        rows = rows.first(@limit) if @limit
        rows.map do |row, figures|
          { "counter" => row.counter, "kind" => row.kind, "path" => row.path, "line" => row.line,
            "subject" => row.subject, "count" => row.count, "first_ns" => row.first_ns,
            "misses" => figures.misses, "time_ns" => figures.time_ns, "time_doubt" => figures.doubt,
            "stack" => @caches.stack(row).map { |frame| %w[name path line].zip(frame).to_h } }
        end
      end
    end
  end
end
