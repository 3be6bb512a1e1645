# frozen_string_literal: true

require "json"
require_relative "../test_helper"
require_relative "../support/command_line"
require_relative "../support/imported"
require_relative "../support/real_perf"

# The call graph of the real perf's recordings against `perf report --children` of the same file.
class PerfGraphPeerTest < Minitest::Test
  include CommandLine
  include Imported
  extend RealPerf

  # Recursion, in Ruby and in C, and garbage collection.
  PROGRAM = <<~RUBY
    require "zlib"
    def nested(depth) = depth.zero? ? "x" * 100 : [nested(depth - 1)]
    text = Array.new(20_000) { |i| "line \#{i}" }.join("\\n")
    5.times { Zlib.deflate(text) }
    3000.times { nested(20).flatten.inspect }
    20_000.times { |i| [i.to_s, i].hash }
  RUBY

  def record(*options)
    system("perf", "record", "-q", *options, "-o", file("perf.data"), "--", RUBY, "-e", PROGRAM, exception: true)
    imported = pitwall("import", "perf.data", "--out", "ours.pit", env: { "PITWALL_DEBUG" => nil })
    assert_equal 0, imported.status.exitstatus, imported.err
  end

  # [object, symbol] → [total, self] in percent. Addresses without a symbol are many rows there, and one here.
  def reported
    rows("--children", "-F", "overhead_children,overhead,dso,symbol").to_h do |total, own, object, symbol|
      [[symbol.start_with?("[k]") ? "[kernel]" : object, named(symbol)], [total.to_f, own.to_f]]
    end
  end

  def rows(*options)
    text = IO.popen(["perf", "report", "-i", file("perf.data"), "-g", "none", "--stdio", "--no-inline", "--no-demangle",
                     "-q", "-t", "|", *options], err: File::NULL, &:read)
    text.lines.grep(/\|/).map { |line| line.split("|").map(&:strip) }.reject { |row| row.last.match?(/\] 0x\h+\z/) }
  end

  def named(symbol) = symbol.split(" ", 2).last.sub(/@@.*/, "")

  def graph(*options)
    options += %w[--native --no-demangle --view graph --format json --weight cpu]
    out = pitwall("report", "ours.pit", *options).out
    JSON.parse(out).dig("graph", "symbols").reject { |row| row["name"] == "[unknown]" }
  end

  def ours(*options)
    graph(*options).to_h do |row|
      [[File.basename(row["file"]), row["name"].sub(/@@.*/, "")], row.values_at("total_percent", "self_percent")]
    end
  end

  def assert_same_shares(expected, found)
    assert_empty expected.keys - found.keys, "in perf's report alone"
    assert_empty found.keys - expected.keys, "in ours alone"
    found.each do |symbol, shares|
      shares.zip(expected.fetch(symbol)) { |ours, perfs| assert_in_delta perfs, ours, 0.011, symbol.join(" ") }
    end
  end

  perf_test :total_and_self_of_every_symbol_are_those_of_perf_report do
    record("--call-graph", "dwarf,16384", "-F", "499", "-e", "task-clock")
    found = ours
    assert_operator found.size, :>, 50
    assert_same_shares(reported, found)
  end

  # `perf report -d OBJECT`. With --children, perf adds some rows of other objects.
  perf_test :a_shared_object_has_the_rows_that_perf_report_gives_it do
    record("--call-graph", "dwarf,16384", "-F", "499", "-e", "task-clock")
    object = reported.reject { |(name, _), _| name == "[kernel]" }.max_by { |_, (_, own)| own }.first.first
    expected = rows("--no-children", "-d", object, "-F", "overhead,symbol").to_h { |own, name| [named(name), own.to_f] }
    found = ours("--object", object).to_h { |(file, name), (_, own)| [[file, name], own] }
    refute_empty expected
    assert_equal [object], found.keys.map(&:first).uniq
    expected.each { |name, own| assert_in_delta own, found.fetch([object, name]), 0.011, name }
    assert_in_delta expected.values.sum, found.values.sum, 0.011 * found.size
  end

  # Callers add up to a symbol's total, and so do its self time and its callees, in perf's stacks too.
  perf_test :callers_and_callees_add_up do
    record("--call-graph", "dwarf,16384", "-F", "499", "-e", "task-clock")
    graph.each do |row|
      assert_equal row["total"], row["callers"].sum { |edge| edge["total"] }
      assert_equal row["total"], row["self"] + row["callees"].sum { |edge| edge["total"] }
    end
  end
end
