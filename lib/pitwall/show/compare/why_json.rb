# frozen_string_literal: true

module Pitwall
  module Show
    # The change between two profiles as a JSON object (`why`).
    # With `unit` "ns" weights are times of one iteration; with "share" weights are parts of the whole, 0 to 1.
    # With "share", `time` is the time in one recording. `time_changed` tells whether that time changed too, or only
    # the share.
    module WhyJson
      module_function

      # The object for two sides.
      # @param result [Analyse::ProfileChange::Result]
      # @param base [String] name of A
      # @param side [String] name of B
      #: (Analyse::ProfileChange::Result, base: String, side: String) -> Hash[String, untyped]
      def body(result, base:, side:)
        { "base" => base, "side" => side, "weight" => result.weight.to_s,
          "unit" => result.unit == :iteration ? "ns" : "share",
          "noise" => result.noise.to_s, "level" => result.level, "correction" => "holm", "tests" => result.tests,
          "runs" => result.runs, "recorded_#{of(result)}" => result.wholes, "iteration_ns" => result.means,
          "smallest_detectable" => result.detectable, "reason" => result.reason, "notes" => result.notes,
          "methods" => result.rows.map { |row| tested(row, of(result)) } }
      end

      # One tested method. `self` and `total` each have `changed`.
      # @param of [String] what weights are counted in, "ns" or "counts"
      #: (Analyse::ProfileChange::Row, ?String) -> Hash[String, untyped]
      def tested(row, of = "ns")
        callers = row.callers.map { |step| { "name" => step.name, "file" => step.path, "a" => step.a, "b" => step.b } }
        { "name" => row.name, "file" => row.path, "lines" => row.lines.map { |line| line if line.positive? },
          "kind" => row.kind, "presence" => row.presence.to_s,
          "self" => delta(row.own, of), "total" => delta(row.total, of), "callers" => callers }
      end

      def of(result) = result.weight == :captures ? "counts" : "ns"
      private_class_method :of

      def delta(delta, of)
        found = delta.difference
        change = { "point" => found.point, "low" => found.low, "high" => found.high, "level" => found.level }
        time = delta.time && { "a_#{of}" => delta.times[0], "b_#{of}" => delta.times[1],
                               "point_#{of}" => delta.time.point, "low_#{of}" => delta.time.low,
                               "high_#{of}" => delta.time.high }
        { "a" => delta.a, "b" => delta.b,
          "a_percent" => (delta.a_share * 100).round(4), "b_percent" => (delta.b_share * 100).round(4),
          "change" => change, "p" => delta.p, "changed" => delta.changed, "time" => time,
          "time_changed" => delta.lasting }
      end
      private_class_method :delta
    end
  end
end
