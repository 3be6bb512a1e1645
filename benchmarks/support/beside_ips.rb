# frozen_string_literal: true

# benchmark-ips on a planted pair, as its users would: both sides in one process, its own times and its own verdict.
#
#   ruby -I BENCHMARK_IPS benchmarks/support/beside_ips.rb FILE CLASS UNITS_A UNITS_B SECONDS
require "benchmark/ips"

file, name, a, b, seconds = ARGV
require file
sides = { "A" => a, "B" => b }.transform_values { |units| Planted.const_get(name).new(Integer(units)) }

Benchmark.ips do |x|
  x.config(time: Float(seconds), warmup: Float(seconds) * 2 / 5)
  sides.each { |side, work| x.report(side) { work.run } }
  x.compare!
end
