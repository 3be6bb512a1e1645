# frozen_string_literal: true

require "pitwall/analyse/requests/tests"

module Pitwall
  module Analyse
    module Findings
      # One of several tests takes a large part of the time of all tests.
      module SlowTest
        # Smallest share of the time.
        SHARE = 0.3
        # Fewest tests.
        LEAST_TESTS = 3
        # Smallest ratio of its time to the mean of all tests.
        MORE = 2
        private_constant :SHARE, :LEAST_TESTS, :MORE

        #: (Evidence, Array[Finding]) -> Array[Finding]
        def self.findings(evidence, _found)
          rows = Tests.new(evidence.segments).rows(evidence.selection)
          all = rows.sum(&:duration_ns)
          return [] if rows.size < LEAST_TESTS || all < LEAST_NS

          row = rows.first
          return [] if row.duration_ns < all * [SHARE, MORE.fdiv(rows.size)].max

          figures = { tests: rows.size, runs: row.runs, cpu_ns: row.cpu_ns, request: row.request }
          view = row.request ? ["--request", row.request.to_s, "--tree"] : ["--view", "tests"]
          [evidence.finding(:slow_test, nil, row.duration_ns, whole: all, of: :tests, subject: row.name,
                            figures: figures, label: [Tests::LABEL, row.name], view: view)]
        end
      end
    end
  end
end
