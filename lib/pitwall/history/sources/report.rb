# frozen_string_literal: true

module Pitwall
  module History
    module Sources
      # What `bench --format json` and `compare --format json` print.
      module Report
        BENCH = "pitwall/bench-1"
        COMPARE = "pitwall/compare-1"
        private_constant :BENCH, :COMPARE

        class << self
          #: (untyped) -> bool
          def of?(object) = object.is_a?(Hash) && [BENCH, COMPARE].include?(object["schema"])

          #: (String, String, untyped, Facts) -> Array[Run]
          def runs(path, text, object, facts)
            Sources.refuse_ranges(path, object)
            results = object["results"]
            unless results.is_a?(Array) && results.all? { |row| row.is_a?(Hash) && row["name"].is_a?(String) }
              raise BadRecording, "#{path}: has no results"
            end

            facts = facts.dup
            facts.host ||= object["host"].to_h
            object["schema"] == BENCH ? bench(text, object, facts) : compare(text, object, facts)
          end

          private

          def bench(text, object, facts)
            facts.ruby = object.dig("facts", "ruby")&.to_s || facts.ruby
            run = Sources.run(text, facts, tool: "pitwall bench", command: object["command"]&.to_s)
            run.figures = object["results"].filter_map do |row|
              figure(facts, row, row["a"], low: row.dig("estimate", "low"), high: row.dig("estimate", "high"))
            end
            [run]
          end

          # The base's value stands in each row.
          def compare(text, object, facts)
            values = Hash.new { |sides, side| sides[side] = {} }
            object["results"].each do |row|
              values[row["base"].to_s][row.values_at("name", "metric")] ||= figure(facts, row, row["a"])
              values[row["side"].to_s][row.values_at("name", "metric")] ||= figure(facts, row, row["b"])
            end
            of_sides = Array(object["sides"]).grep(Hash).to_h { |side| [side["name"].to_s, side["facts"].to_h] }
            values.map do |side, figures|
              own = facts.dup
              own.commit = of_sides.dig(side, "revision")&.to_s || own.commit
              own.ruby = of_sides.dig(side, "ruby")&.to_s || own.ruby
              Sources.run(text, own, side: side, tool: "pitwall compare", command: object["command"]&.to_s)
                     .tap { |run| run.figures = figures.values.compact }
            end
          end

          def figure(facts, row, value, low: nil, high: nil)
            return unless value.is_a?(Numeric)

            Sources.figure(facts, benchmark: row["name"], metric: row["metric"].to_s, unit: row["unit"].to_s,
                                  value: value.to_f, low: low&.to_f, high: high&.to_f)
          end
        end
      end
    end
  end
end
