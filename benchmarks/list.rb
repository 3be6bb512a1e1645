# frozen_string_literal: true

module Benchmarks
  # Every benchmark there is, in the order in which `benchmarks/run` takes them. A file below benchmarks/ that is
  # neither listed here nor part of the support fails test/benchmarks_test.rb.
  LIST = {
    "sampler/overhead" => "what a sample costs, beside the bare timer and the peers",
    "sampler/accuracy" => "how far shares are from the truth, wall and CPU, one thread and four",
    "sampler/stop_and_size" => "how long stopping takes and how large the file is",
    "allocations/overhead" => "what counting every object costs, exactly, with stacks and in bursts, beside the peers",
    "tracer/overhead" => "what tracing every call costs, beside ruby-prof",
    "report/speed" => "time and memory of `pitwall report` on 1,000,000 samples",
    "compare/error_rates" => "how often `pitwall compare` is wrong, and how soon it is right, beside benchmark-ips and hyperfine",
    "compare/harness_cost" => "what the loop of `pitwall bench` costs an iteration, beside benchmark-ips",
    "compare/cached_start" => "how long `pitwall compare` of two revisions takes until it measures, the bundle being there",
    "allocations/prediction" => "what removing an allocating line saves, predicted and measured, on eight programs"
  }.freeze
end
