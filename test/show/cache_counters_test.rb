# frozen_string_literal: true

require_relative "../test_helper"
require "json"
require "pitwall/version"
require "pitwall/analyse"
require "pitwall/bench_child/assembled"
require "pitwall/show"
require "pitwall/show/bench/json"
require "pitwall/show/bench/markdown"
require "pitwall/show/bench/text"
require "pitwall/show/compare/json"
require "pitwall/show/compare/markdown"
require "pitwall/show/compare/text"
require "pitwall/show/page/measured_page"
require "pitwall/views/hints"

# Counters of the VM's caches in the reports of bench and compare: one name for each, and what a Ruby does not count.
class CacheCountersTest < Minitest::Test
  Show = Pitwall::Show
  Analyse = Pitwall::Analyse
  Side = Struct.new(:name, :facts)
  OLD = { "class_serial" => 2, "global_constant_state" => 0, "global_cvar_state" => 0 }.freeze
  NEW = { "constant_cache_misses" => 1, "constant_cache_invalidations" => 0, "global_cvar_state" => 0,
          "next_shape_id" => 0, "shape_cache_size" => 0, "yjit_invalidation_count" => 3 }.freeze

  def samples(side, counters)
    Array.new(8) do |block|
      values = { "wall" => [100.0 + block] * 3, **counters.transform_values { |count| [count] } }
      Pitwall::Record::Sample.new(side: side, name: "make", block: block, order: 0, values: values, iterations: 60,
                                  first_ns: 900, warmup: 20, digest: nil, notes: [])
    end
  end

  def kase
    Pitwall::Record::Case.new(index: 0, block: 0, block_name: "", name: "make", label: "make", params: {}, flags: [])
  end

  def bench(counters)
    Analyse::BenchReport.of(samples("", counters), cases: [kase], name: "a.rb", facts: { "ruby" => "ruby 3.1.2" })
  end

  def test_bench
    report = bench(OLD)
    missing = "constant_cache_misses, constant_cache_invalidations, next_shape_id, shape_cache_size"
    text = Show::BenchText.new(report, width: 200).to_s
    assert_match(/^caches, each +serials\nmake +2$/, text)
    assert_match(/^not counted by this Ruby +#{missing}$/, text)
    markdown = Show::BenchMarkdown.new(report).to_s
    assert_match(/\| caches, each \| serials \|\n.*\n\| `make` \| 2 \|/, markdown)
    assert_match(/not counted by this Ruby: #{missing.gsub("_", "\\\\\\\\?_")}/, markdown)
    assert_equal missing.split(", "), JSON.parse(Show::BenchJson.new(report).to_s)["not_counted"]
    tables = Show::MeasuredPage.new(report, hints: Pitwall::Views::Hints).data.object["tables"]
    assert_includes tables.map { |table| table["heads"] }, ["caches, each", "serials"]
    assert_match(/^caches, each +misses +yjit invalidation_count\nmake +1 +3$/,
                 Show::BenchText.new(bench(NEW), width: 200).to_s)
    refute_match(/not counted/, Show::BenchText.new(bench({}), width: 200).to_s)
  end

  def compare(old, new)
    sides = [Side.new("a", { "ruby" => "ruby 3.1.2" }), Side.new("b", { "ruby" => "ruby 4.0.5" })]
    Analyse::ComparisonReport.of(samples("a", old) + samples("b", new), cases: [kase], plans: {}, sides: sides,
                                 settings: { "alpha" => 0.01, "margin" => 0.01 })
  end

  def test_compare
    report = compare(OLD, NEW)
    words = [Show::CompareText.new(report, hints: Pitwall::Views::Hints, width: 200).to_s,
             Show::CompareMarkdown.new(report, hints: Pitwall::Views::Hints).to_s.delete("\\")]
    words.each do |text|
      assert_match(/not counted by a's Ruby:? +constant_cache_misses, constant_cache_invalidations, /, text)
      assert_match(/not counted by b's Ruby:? +class_serial, global_constant_state$/, text)
    end
    sides = JSON.parse(Show::CompareJson.new(report).to_s)["sides"]
    assert_equal %w[class_serial global_constant_state], sides.last["not_counted"]
    text = Show::CompareText.new(compare(NEW, NEW), hints: Pitwall::Views::Hints, width: 200).to_s
    assert_match(/^not counted by this Ruby +class_serial, global_constant_state$/, text)
  end

  # The readers know keys by patterns, because a measured process does not load the vocabulary.
  def test_the_vocabulary_has_every_counter_that_is_read
    names = Pitwall::Bench::Counters.read.keys.grep_v(/faults|switches|max_rss/)
    assert_empty names - Pitwall::Record::VM_COUNTERS.keys
    assert_equal RubyVM.stat.keys.map(&:to_s).sort, (names & Pitwall::Record::STAT_COUNTERS).sort
    assert_equal Pitwall::Record::STAT_COUNTERS - RubyVM.stat.keys.map(&:to_s),
                 Pitwall::Record.stat_counters_missing(names)
    Pitwall::Record::VM_COUNTERS.each_value do |counter|
      key = counter.name.delete_prefix("#{counter.jit}_")
      assert_equal !counter.jit.nil?, Pitwall::Bench::Counters::OF_JIT.match?(key), counter.name
      assert_equal counter.title, Pitwall::Record::METRICS.fetch(counter.name).title
    end
  end

  def test_counters_of_a_jit_that_runs
    jit = %i[YJIT ZJIT].find { |name| RubyVM.const_defined?(name) } or return
    prefix = jit.to_s.downcase
    code = "require 'pitwall/bench_child/assembled'; puts Pitwall::Bench::Counters.read.keys"
    lib = File.join(Checkout::ROOT, "lib")
    on, off = [["--#{prefix}"], []].map do |options|
      names = IO.popen([{ "RUBYOPT" => nil }, RbConfig.ruby, *options, "-I#{lib}", "-e", code], &:read).split
      names.grep(/\A#{prefix}_/)
    end
    assert_empty off
    refute_empty on unless RUBY_VERSION < "3.3" # Ruby 3.1 counts only in a debug build
    assert_empty on - Pitwall::Record::VM_COUNTERS.keys
  end
end
