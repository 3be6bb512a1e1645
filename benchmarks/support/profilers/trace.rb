# frozen_string_literal: true

require "pitwall"
require_relative "none"

module Benchmarks
  module Profilers
    # Pitwall's tracer.
    class TraceCase < NoneCase
      def initialize(interval_ns: 0, out: nil, **options)
        super(interval_ns: interval_ns, out: out)
        @options = Pitwall::Collect::TraceOptions.check(options)
      end

      def start = Pitwall.start(record: @out, mode: "none", collectors: { "trace" => @options })
      def stop = Pitwall.stop
    end
  end
end
