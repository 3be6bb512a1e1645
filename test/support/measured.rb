# frozen_string_literal: true

require "pitwall/analyse/compare/comparison_report"
require "pitwall/analyse/statistics/effect"
require "pitwall/analyse/statistics/estimate"
require "pitwall/analyse/warning"
require "pitwall/record/sample"

# Invented measurements for tests of the views.
module Measured
  Side = Struct.new(:name, :facts)
  UNITS = {
    "objects" => "count", "bytes" => "bytes", "gc_runs" => "count", "minor_faults" => "count", "max_rss" => "bytes"
  }.freeze

  module_function

  def estimate(point, low, high, level: 0.99, n: 24) = Pitwall::Analyse::Estimate.new(point, low, high, level, n)

  # @param ratio [Array] point, low, high
  def effect(verdict, ratio, a: 12_345_678.0, name: "join n=100", metric: "wall", side: "dirty", base: "main", **more)
    point = ratio[0]
    Pitwall::Analyse::Effect.new(
      name: name, side: side, base: base, metric: metric, unit: UNITS.fetch(metric, "ns"),
      a: a, b: point ? a * point : 3.0, ratio: estimate(*ratio), verdict: verdict, exact: false, pairs: 24,
      smallest_detectable: 0.0123, margin: 0.01, below_margin: false, reason: nil, **more
    )
  end

  def exact(verdict, a, b, metric: "objects", **more)
    ratio = a.zero? ? (b.zero? ? 1.0 : nil) : b.fdiv(a)
    effect(verdict, [ratio] * 3, a: a, metric: metric, **more, b: b, exact: true, smallest_detectable: nil)
  end

  # Samples of processes, in pairs of both sides. The median of a process is near the middle of its side.
  def samples(name, middles, pairs: 24, seed: 1, spread: 0.01)
    random = Random.new(seed)
    pairs.times.flat_map do |block|
      middles.each_with_index.map do |(side, middle), order|
        wall = Array.new(5) { middle * (1 + spread * Array.new(6) { random.rand - 0.5 }.sum) }
        wall.map! { |value| value * 1.4 } if block == 7 && order.zero?
        Pitwall::Record::Sample.new(
          side: side, name: name, block: block, order: order, values: { "wall" => wall },
          iterations: 500, first_ns: 20_000_000, warmup: 100, notes: []
        )
      end
    end
  end

  def slower = effect(:slower, [1.0213, 1.0141, 1.0284])

  def comparison(effects, **more)
    names = effects.flat_map { |effect| [effect.base, effect.side] }.uniq
    samples = effects.select { |effect| effect.metric == "wall" }.group_by(&:name).flat_map do |name, group|
      samples(name, { group.first.base => group.first.a }.merge(group.to_h { |effect| [effect.side, effect.b] }))
    end
    Pitwall::Analyse::ComparisonReport.new(
      effects: effects, samples: samples, sides: names.map { |name| Side.new(name, facts.fetch(name, {})) },
      settings: { "metric" => "wall", "alpha" => 0.01, "margin" => 0.01, "looks" => 6, "budget_s" => 60 },
      host: { "cores" => 2, "cpu" => "AMD EPYC 7763", "kernel" => "6.1.0-18-amd64", "memory_bytes" => 8_589_934_592 },
      warnings: [], losses: {}, control: nil, duration_ns: 41_200_000_000,
      command: "pitwall compare --rev main --dirty benchmark/join.rb", why: nil, **more
    )
  end

  def facts
    ruby = "ruby 3.4.11 (2026-10-02) [x86_64-linux-gnu]"
    { "main" => { "revision" => "3f2a1b9c0d11", "ruby" => ruby },
      "dirty" => { "revision" => "3f2a1b9c0d11 and 3 changed files", "ruby" => ruby } }
  end

  def warning(text = "the host was busy: load 3.1 on 2 cores", hint = "--budget 120 measures longer", subject: nil)
    Pitwall::Analyse::Warning.new(:busy_host, subject, text, hint)
  end
end
