# frozen_string_literal: true

module Pitwall
  class << self
    # A block of cases, in a file for `pitwall bench` or in a file that requires "pitwall/ips":
    #
    #   Pitwall.bench("join") do |x|
    #     x.param :n, 10, 100, 1000, 10_000             # measured at each value; several params: their product
    #     x.setup { |n:| Array.new(n, "word") }         # runs once a process; its value is the state
    #     x.before { |words| words.dup }                # runs before each iteration, outside the clock
    #     x.report("join") { |words| words.join(",") }
    #     x.report("inject", 'state.inject { |a, b| a + "," + b }')
    #     x.after { |words| words.clear }
    #     x.compare!
    #   end
    #
    # A case's block gets the state, and as keywords the params that it names. Without a setup the state is the Hash of
    # params, if there are any.
    #
    # @raise [UsageError] an unknown call, or two cases with one label
    #: (?String?) { (Pitwall::Bench::Sweep) -> void } -> Pitwall::Bench::Report
    def bench(name = nil, &block)
      Pitwall::Bench.run_block(Pitwall::Bench::Sweep.new("Pitwall.bench", name), block)
    end
  end
end

# The calls of benchmark-ips.
module Benchmark
  module IPS
    # Some files set a format here. Pitwall does not read it.
    def self.options
      @options ||= {}
    end
  end

  class << self
    # Benchmark.ips { |x| … }, (time: 2, warmup: 1) or (2, 1)
    #: (*untyped, **untyped) { (Pitwall::Bench::Job) -> void } -> Pitwall::Bench::Report
    def ips(*arguments, **settings, &block)
      settings = arguments.pop.merge(settings) if arguments.last.is_a?(Hash)
      positional = %i[time warmup quiet].zip(arguments).to_h.compact
      Pitwall::Bench.run_block(Pitwall::Bench::Job.new("Benchmark.ips", "", positional.merge(settings)), block)
    end

    # Compares methods of one object: Benchmark.ips_quick(:upcase, :downcase, on: "x")
    #: (*Symbol, ?on: untyped, **untyped) -> Pitwall::Bench::Report
    def ips_quick(*names, on: Kernel, **settings)
      if names.empty?
        raise Pitwall::Bench::Misuse,
              "Benchmark.ips_quick needs methods: Benchmark.ips_quick(:upcase, :downcase, on: \"x\")"
      end

      ips(**settings) do |x|
        names.each { |name| x.report(name) { on.__send__(name) } }
        x.compare!
      end
    end
  end
end
