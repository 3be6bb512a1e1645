# frozen_string_literal: true

require_relative "report"

# Loaded by the runner of Ruby's own tests as if this file were a test file. Tells of each test (report.rb).
module WitnessReporter
  module_function

  def outcome(error)
    case error
    when nil then "pass"
    when Test::Unit::PendedError then "skip"
    when Test::Unit::AssertionFailedError then "fail"
    else "error"
    end
  end

  # For Test::Unit::AutoRunner::Runner.
  module Told
    def _start_method(inst)
      WitnessReport.tell("start", "#{inst.class}##{inst.__name__}")
      super
    end

    # Comes twice for a test whose teardown failed: the second outcome counts.
    def record(suite, method, assertions, time, error, *rest)
      message = error && "#{error.class}: #{error.message}"
      WitnessReport.tell(WitnessReporter.outcome(error), "#{suite}##{method}", message)
      super
    end
  end

  Test::Unit::AutoRunner::Runner.prepend(Told)
end

# An extension that only Ruby's own build has; a test asks this of it, and would fail for nothing but its absence.
module Test
  module Sanitizers
    def self.asan_enabled? = false
    def self.lsan_enabled? = false
  end
end
