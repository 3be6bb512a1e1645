# frozen_string_literal: true

require "json"
require "pitwall/analyse/requests/queries"
require "pitwall/analyse/threads/states"
require "pitwall/show/gc/cost_json"
require "pitwall/show/gc/json"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # The report for programs: one object, integers in ns or counts, names whole. The tree is a list in reading order whose
    # rows name their parent's place in it, because parsers refuse objects nested as deep as stacks are.
    class JsonReport
      SCHEMA = "pitwall/report-1"
      QUERY_KINDS = %w[asked cached schema].freeze
      private_constant :QUERY_KINDS

      # @param parts [Array<Symbol>] what to add on request: :tree, :bottom_up, :lines, :callers, :callees, :labels, :requests, :queries, :tests, :gc, :gc_cost
      #: (Analyse::Report, ?warnings: Array[Hash[String, untyped]], ?parts: Array[Symbol], ?limit: Integer?, ?difference: untyped, ?findings: Array[untyped]) -> void
      def initialize(report, warnings: [], parts: [], limit: nil, difference: nil, findings: [])
        @report = report
        @warnings = warnings
        @parts = parts
        @limit = limit
        @difference = difference
        @findings = findings
      end

      # Ends without a newline.
      #: (?apart: bool) -> String
      def to_s(apart: false)
        object = { "schema" => SCHEMA, "findings" => @findings }.merge(body)
        object["processes"] = @report.apart.map { |report| JsonReport.new(report, parts: @parts, limit: @limit).body } if apart
        JSON.generate(object)
      end

      #: () -> Hash[String, untyped]
      def body
        object = { "weight" => @report.weight.to_s, "unit" => Units.unit(@report.weight), "total" => @report.total,
                   "methods" => methods, "threads" => @report.threads.map { |row| thread(row) } }
        object["waiting"] = waiting if @report.segments.any?(&:sampled?)
        object["work"] = work unless @report.work.equal?(@report)
        object["tree"] = outline(@report.top_down) if @parts.include?(:tree)
        object["bottom_up"] = outline(@report.bottom_up) if @parts.include?(:bottom_up)
        object["calls"] = limited(@report.call_times).map { |row| call(row) } if @parts.include?(:calls)
        object["lines"] = limited(@report.lines).map { |row| line(row) } if @parts.include?(:lines)
        object["callers"] = neighbours(*@report.callers) if @parts.include?(:callers)
        object["callees"] = neighbours(*@report.callees) if @parts.include?(:callees)
        object["labels"] = labels(@report.labels) if @parts.include?(:labels)
        object["requests"] = limited(@report.requests).map { |row| request(row) } if @parts.include?(:requests)
        object["queries"] = queries if @parts.include?(:queries)
        object["tests"] = limited(@report.tests).map { |row| row.to_h.transform_keys(&:to_s) } if @parts.include?(:tests)
        object["gc"] = GCJson.new(@report.collections, limit: @limit).to_h if @parts.include?(:gc)
        object["gc_cost"] = GCCostJson.new(@report.gc_cost, prediction: @report.prediction, limit: @limit).to_h if @parts.include?(:gc_cost)
        object["request"] = request(@report.query.request, lines: true) if @report.query.request
        object.merge(context)
      end

      # @api private
      #: () -> Array[Hash[String, untyped]]
      def methods = limited(@report.flat).map { |row| method_row(row) }

      private

      def limited(rows) = @limit ? rows.first(@limit) : rows

      def context
        summary = @report.summary
        header = summary.headers.first
        context = { "program" => summary.programs.first, "elapsed_ns" => summary.elapsed_ns, "process_cpu_ns" => summary.stat("process_cpu_ns"),
                    "interval_ns" => header&.interval_ns, "mode" => header&.mode, "mode_reason" => header&.mode_reason, "ruby" => header&.ruby || {}, "host" => header&.host || {},
                    "settings" => header&.settings || {}, "pids" => summary.headers.map(&:pid),
                    "losses" => summary.losses, "own_ns" => summary.own_ns, "notes" => summary.notes, "warnings" => @warnings,
                    "idle_threads" => @report.left_out }
        context["trace"] = trace(summary) if summary.traced?
        context["control"] = { "wall_ratio" => @difference.wall_ratio, "cpu_ratio" => @difference.cpu_ratio } if @difference
        context
      end

      # Of the threads looked at.
      def waiting
        waiting = @report.waiting
        { "wall" => waiting.total, "of" => waiting.all, "by" => waiting.rows.map { |name, ns| { "name" => name, "wall" => ns } } }
      end

      # What ran, where waiting stands apart, as the text has it.
      def work
        report = @report.work
        { "total" => report.total, "methods" => JsonReport.new(report, limit: @limit).methods }
      end

      def trace(summary)
        { "calls" => summary.calls, "lost_calls" => summary.lost_calls, "probe_ns" => summary.probe_ns,
          "probes" => summary.probes.transform_values { |inside, outside, error| { "inside_ns" => inside, "outside_ns" => outside, "error_ns" => error } } }
      end

      def call(row)
        place(row.method).merge("total" => row.total, "self" => row.own, "wait" => row.wait, "child" => row.child, "calls" => row.calls)
      end

      def method_row(row)
        object = place(row.method).merge(weights(row.own, row.total))
        row.also.each { |weight, own| object[@report.counted.include?(weight) ? weight.to_s : "self_#{weight}"] = own }
        object
      end

      def place(method)
        { "name" => method.name, "file" => method.path, "line" => method.line, "kind" => method.kind }
      end

      def weights(own, total)
        { "self" => own, "total" => total, "self_percent" => percent(own), "total_percent" => percent(total) }
      end

      def percent(part, whole = @report.total) = whole.zero? ? 0.0 : (part.fdiv(whole) * 100).round(4)

      def thread(row)
        { "pid" => row.pid, "id" => row.id, "native_id" => row.native_id, "name" => row.name, "wall" => row.wall, "cpu" => row.cpu,
          "captures" => row.captures, "states" => row.states.transform_keys { |state| Analyse::States.name(state) } }
      end

      def outline(result)
        result.rows.map do |row|
          { "parent" => row.parent, "depth" => row.depth, **place(row.method), **weights(row.own, row.total), "hidden" => row.hidden }
            .merge(@report.summary.traced? && row.also ? { "calls" => row.also } : {})
        end
      end

      def line(row)
        { "path" => row.path, "line" => row.line, "method" => row.method&.name, **weights(row.own, row.total) }
      end

      # With what it asked databases, where that was counted.
      def request(row, lines: false)
        object = request_itself(row)
        return object unless @report.queries?

        rows = @report.queries_of(row)
        sum = Analyse::Queries.sum(rows)
        object.merge!("queries" => sum.count, "query_ns" => sum.ns, "cached_queries" => sum.cached, "schema_queries" => sum.schema, "repeats" => sum.repeats)
        lines ? object.merge!("query_lines" => rows.map { |one| query(one) }) : object
      end

      # counted: false where queries were not; then the drivers' methods are all that is known.
      def queries
        total = @report.query_total
        object = { "counted" => @report.queries?, "requests" => total.requests, "queries" => total.count, "query_ns" => total.ns, "of_ns" => total.of_ns,
                   "cached_queries" => total.cached, "schema_queries" => total.schema, "lines" => limited(@report.queries).map { |row| query(row) } }
        drivers = @report.driver_time
        object["driver_ns"], object["driver_of_ns"] = drivers if drivers
        object
      end

      def query(row)
        { "path" => row.path, "line" => row.line, "method" => row.method&.name, "digest" => row.digest, "kind" => QUERY_KINDS.fetch(row.kind, "kind #{row.kind}"),
          "requests" => row.requests, "queries" => row.count, "ns" => row.ns, "most" => row.most }
      end

      def request_itself(row)
        { "number" => row.number, "labels" => row.labels, "duration_ns" => row.duration_ns, "start_ns" => row.start_ns, "pid" => row.pid,
          "thread_id" => row.thread.id, "thread" => row.thread.name }
      end

      def labels(labels)
        { "name" => labels.name, "names" => labels.names, "labelled" => labels.labelled,
          "values" => limited(labels.rows).map { |row| row.to_h.transform_keys(&:to_s) } }
      end

      def calls(counted) = counted.calls ? { "calls" => counted.calls } : {}

      def neighbours(methods, result)
        rows = result.rows.map do |row|
          named = row.method ? place(row.method) : { "name" => nil, "file" => nil, "line" => nil, "kind" => nil }
          named.merge("total" => row.total, "total_percent" => percent(row.total), "method_percent" => percent(row.total, result.total), **calls(row))
        end
        { "of" => methods.map { |method| place(method) }, **weights(result.own, result.total), **calls(result), "methods" => rows }
      end
    end
  end
end
