# frozen_string_literal: true

module Pitwall
  module History
    module Sources
      # What `x.json! FILE` of benchmark-ips writes: an Array of one object for each report.
      module BenchmarkIPS
        class << self
          #: (untyped) -> bool
          def of?(object)
            object.is_a?(Array) && object.any? && object.all? do |row|
              row.is_a?(Hash) && row["name"].is_a?(String) && rate(row)
            end
          end

          # Iterations a second become nanoseconds an iteration, as Pitwall measures. The spread that the file has is
          # that of its samples, no interval.
          #: (String, String, untyped, Facts) -> Array[Run]
          def runs(_path, text, object, facts)
            run = Sources.run(text, facts, tool: "benchmark-ips")
            run.figures = object.map do |row|
              Sources.figure(facts, benchmark: row["name"], metric: "wall", unit: "ns", value: 1e9 / rate(row))
            end
            [run]
          end

          private

          def rate(row)
            [row["central_tendency"], row["ips"]].find { |number| number.is_a?(Numeric) && number.positive? }
          end
        end
      end
    end
  end
end
