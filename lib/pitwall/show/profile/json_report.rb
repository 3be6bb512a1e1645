# frozen_string_literal: true

require "json"
require "pitwall/show"

module Pitwall
  module Show
    # The report for programs: one object with methods, threads and what else is asked for.
    class JsonReport
      SCHEMA = "pitwall/report-1"

      # @param fields [Proc] JsonRows → further fields of the object
      # @param limit [Integer, nil] rows of each table
      #: (Analyse::Report, ?fields: ^(JsonRows) -> Hash[String, untyped], ?limit: Integer?, **untyped) -> void
      def initialize(report, fields: ->(_) { {} }, limit: nil, warnings: [], difference: nil, findings: [])
        @report = report
        @fields = fields
        @limit = limit
        @rows = JsonRows.new(report, limit: limit)
        @warnings = warnings
        @difference = difference
        @findings = findings
      end

      # Ends without a newline.
      # @param apart [Boolean] also one object for each process?
      #: (?apart: bool) -> String
      def to_s(apart: false)
        object = { "schema" => SCHEMA, "findings" => @findings }.merge(body)
        object["processes"] = @report.by_process.map { |report| part(report).body } if apart
        JSON.generate(object)
      end

      #: () -> Hash[String, untyped]
      def body
        object = { "weight" => @report.weight.to_s, "unit" => Units.unit(@report.weight), "total" => @report.total,
                   "methods" => @rows.methods, "threads" => @rows.threads }
        object["waiting"] = waiting if @report.segments.any?(&:sampled?)
        object["work"] = work unless @report.running.equal?(@report)
        object.update(@fields.call(@rows))
        object["request"] = @rows.request(@report.query.request, lines: true) if @report.query.request
        object.merge(context)
      end

      private

      def part(report) = JsonReport.new(report, fields: @fields, limit: @limit)

      def context
        summary = @report.summary
        context = { "program" => summary.programs.first, "elapsed_ns" => summary.elapsed_ns,
                    "process_cpu_ns" => summary.stat("process_cpu_ns"), **recorded(summary.headers.first),
                    "pids" => summary.headers.map(&:pid), "losses" => summary.losses, "own_ns" => summary.own_ns,
                    "notes" => summary.notes, "warnings" => @warnings, "idle_threads" => @report.left_out }
        context["filters"] = filters if @report.query.filters.any?
        context["trace"] = trace(summary) if summary.traced?
        context["control"] = control if @difference
        context
      end

      # How it was recorded.
      def recorded(header)
        { "interval_ns" => header&.interval_ns, "mode" => header&.mode, "mode_reason" => header&.mode_reason,
          "ruby" => header&.ruby || {}, "host" => header&.host || {}, "settings" => header&.settings || {} }
      end

      # What was asked for, and how much of the whole is left.
      def filters = { **@report.query.filters.to_h, "kept" => @report.total, "of" => @report.whole }

      # A run without Pitwall.
      def control = { "wall_ratio" => @difference.wall_ratio, "cpu_ratio" => @difference.cpu_ratio }

      # Of the threads looked at.
      def waiting
        waiting = @report.waiting
        { "wall" => waiting.total, "of" => waiting.all,
          "by" => waiting.rows.map { |name, ns| { "name" => name, "wall" => ns } } }
      end

      # What ran, where waiting stands apart, as the text has it.
      def work
        report = @report.running
        { "total" => report.total, "methods" => JsonRows.new(report, limit: @limit).methods }
      end

      def trace(summary)
        probes = summary.probes.transform_values do |inside, outside, error|
          { "inside_ns" => inside, "outside_ns" => outside, "error_ns" => error }
        end
        { "calls" => summary.calls, "lost_calls" => summary.lost_calls, "probe_ns" => summary.probe_ns,
          "probes" => probes }
      end
    end
  end
end
