# frozen_string_literal: true

require "pitwall/analyse/requests/queries"
require "pitwall/analyse/recording/states"
require "pitwall/show"
require "pitwall/show/gc/cost_json"
require "pitwall/show/gc/json"

module Pitwall
  module Show
    # Rows of a report for programs: numbers in ns or counts, names whole. A tree is a list in reading order whose rows
    # name their parent's place in it, because parsers refuse objects nested as deep as stacks are.
    class JsonRows
      QUERY_KINDS = %w[asked cached schema].freeze
      # The caller of what a thread starts with.
      NOWHERE = { "name" => nil, "file" => nil, "line" => nil, "kind" => nil }.freeze
      private_constant :QUERY_KINDS, :NOWHERE

      # @return [Analyse::Report]
      attr_reader :report

      # @param limit [Integer, nil] rows of each table
      #: (Analyse::Report, ?limit: Integer?) -> void
      def initialize(report, limit: nil)
        @report = report
        @limit = limit
      end

      # Methods by self weight, with what stands beside it.
      #: () -> Array[Hash[String, untyped]]
      def methods = limited(@report.flat).map { |row| method_row(row) }

      # Traced methods.
      #: () -> Array[Hash[String, untyped]]
      def calls
        limited(@report.call_times).map do |row|
          times = { "total" => row.total, "self" => row.own, "wait" => row.wait, "child" => row.child }
          place(row.method).merge(times, "calls" => row.calls)
        end
      end

      # A tree, from the top or from the ends of the stacks.
      #: (Analyse::Outline::Result) -> Array[Hash[String, untyped]]
      def outline(result)
        result.rows.map do |row|
          calls = @report.summary.traced? && row.also ? { "calls" => row.also } : {}
          { "parent" => row.parent, "depth" => row.depth, **place(row.method), **weights(row.own, row.total),
            "hidden" => row.hidden }.merge(calls)
        end
      end

      #: () -> Array[Hash[String, untyped]]
      def lines
        limited(@report.lines).map do |row|
          { "path" => row.path, "line" => row.line, "method" => row.method&.name, **weights(row.own, row.total) }
        end
      end

      # Callers or callees of methods.
      #: (Array[Analyse::MethodInfo], Analyse::Neighbours::Result) -> Hash[String, untyped]
      def neighbours(methods, result)
        rows = result.rows.map do |row|
          named = row.method ? place(row.method) : NOWHERE
          named.merge("total" => row.total, "total_percent" => percent(row.total),
                      "method_percent" => percent(row.total, result.total), **counted(row))
        end
        { "of" => methods.map { |method| place(method) }, **weights(result.own, result.total), **counted(result),
          "methods" => rows }
      end

      # The call graph: of the symbol asked for, else of all.
      #: () -> Hash[String, untyped]
      def graph
        return symbol_graph(@report.symbol_graph) if @report.query.symbol

        graph = @report.graph
        rows = @limit ? graph.first(@limit) : graph.rows
        { "symbols" => rows.map { |row| symbol(row, @report.least) }, "hidden" => graph.hidden }
      end

      #: () -> Array[Hash[String, untyped]]
      def threads
        @report.threads.map do |row|
          { "pid" => row.pid, "id" => row.id, "native_id" => row.native_id, "name" => row.name, "wall" => row.wall,
            "cpu" => row.cpu, "captures" => row.captures,
            "states" => row.states.transform_keys { |state| Analyse::States.name(state) } }
        end
      end

      # Times by the values of a label.
      #: () -> Hash[String, untyped]
      def labels
        labels = @report.labels
        { "name" => labels.name, "names" => labels.names, "labelled" => labels.labelled,
          "values" => limited(labels.rows).map { |row| label(row) } }
      end

      #: () -> Array[Hash[String, untyped]]
      def requests = limited(@report.requests).map { |row| request(row) }

      # A request, with what it asked databases, where that was counted.
      # @param lines [Boolean] also by line?
      #: (Analyse::Requests::Row, ?lines: bool) -> Hash[String, untyped]
      def request(row, lines: false)
        object = request_itself(row)
        return object unless @report.queries?

        rows = @report.queries_of(row)
        sum = Analyse::Queries.sum(rows)
        object.merge!("queries" => sum.count, "query_ns" => sum.ns, "cached_queries" => sum.cached,
                      "schema_queries" => sum.schema, "repeats" => sum.repeats)
        lines ? object.merge!("query_lines" => rows.map { |one| query(one) }) : object
      end

      # counted: false where queries were not; then the drivers' methods are all that is known.
      #: () -> Hash[String, untyped]
      def queries
        total = @report.query_total
        object = { "counted" => @report.queries?, "requests" => total.requests, "queries" => total.count,
                   "query_ns" => total.ns, "of_ns" => total.of_ns, "cached_queries" => total.cached,
                   "schema_queries" => total.schema, "lines" => limited(@report.queries).map { |row| query(row) } }
        drivers = @report.driver_time
        object["driver_ns"], object["driver_of_ns"] = drivers if drivers
        object
      end

      #: () -> Array[Hash[String, untyped]]
      def tests = objects(@report.tests).map { |test| counters? ? test : test.except("counters") }

      # The garbage collector's runs.
      #: () -> Hash[String, untyped]
      def collections = GCJson.new(@report.collections, limit: @limit).to_h

      # Lines with what the garbage collector costs because of them.
      #: () -> Hash[String, untyped]
      def gc_cost = GCCostJson.new(@report.gc_cost, prediction: @report.prediction, limit: @limit).to_h

      private

      def label(row)
        object = row.to_h.transform_keys(&:to_s)
        return object.except("counters") unless counters?

        object.merge!("counters" => row.counters&.transform_values { |sum| sum.to_h.transform_keys(&:to_s) })
      end

      def symbol_graph(graph)
        { "of" => graph.methods.map { |method| place(method) }, "symbols" => [symbol(graph.row, graph.least)],
          "hidden" => 0, "chains" => outline(graph.chains) }
      end

      # Callers and callees below `least` are left out.
      def symbol(row, least)
        { **place(row.method), **weights(row.own, row.total), "places" => row.places, **counted(row),
          "callers" => edges(row.callers, least), "callees" => edges(row.callees, least) }
      end

      def edges(edges, least)
        edges.select { |edge| edge.total >= least || (edge.total.zero? && edge.calls) }.map do |edge|
          lines = edge.places.map { |one| { "line" => one.line, "total" => one.total } }
          { **(edge.method ? place(edge.method) : NOWHERE), "total" => edge.total,
            "total_percent" => percent(edge.total), "places" => lines, **counted(edge) }
        end
      end

      def limited(rows) = @limit ? rows.first(@limit) : rows

      # Were counters of the VM's caches read?
      def counters? = @report.work_counters.any?

      def objects(rows) = limited(rows).map { |row| row.to_h.transform_keys(&:to_s) }

      def method_row(row)
        object = place(row.method).merge(weights(row.own, row.total))
        row.also.each do |weight, own|
          object[@report.counted.include?(weight) ? weight.to_s : "self_#{weight}"] = own
        end
        object
      end

      def place(method)
        { "name" => method.name, "file" => method.path, "line" => method.line, "kind" => method.kind }
      end

      def weights(own, total)
        { "self" => own, "total" => total, "self_percent" => percent(own), "total_percent" => percent(total) }
      end

      def percent(part, whole = @report.total) = whole.zero? ? 0.0 : (part.fdiv(whole) * 100).round(4)

      def counted(row) = row.calls ? { "calls" => row.calls } : {}

      def query(row)
        { "path" => row.path, "line" => row.line, "method" => row.method&.name, "digest" => row.digest,
          "kind" => QUERY_KINDS.fetch(row.kind, "kind #{row.kind}"), "requests" => row.requests,
          "queries" => row.count, "ns" => row.ns, "most" => row.most }
      end

      def request_itself(row)
        { "number" => row.number, "labels" => row.labels, "duration_ns" => row.duration_ns, "start_ns" => row.start_ns,
          "pid" => row.pid, "thread_id" => row.thread.id, "thread" => row.thread.name,
          **(counters? ? { "counters" => @report.work_counters.of_request(row) } : {}) }
      end
    end
  end
end
