# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require_relative "../support/imported"
require_relative "../support/real_perf"

# Imported recordings of the real perf against perf's own report of the same file.
class PerfPeerTest < Minitest::Test
  include CommandLine
  include Imported
  extend RealPerf

  PROGRAM = <<~RUBY
    require "zlib"
    text = Array.new(40_000) { |i| "line \#{i}" }.join("\\n")
    10.times { Zlib.deflate(text) }
    File.open("/dev/zero") { |zero| 300.times { zero.read(1 << 20) } }
    100_000.times { |i| i.to_s * 3 }
  RUBY

  def record(*options)
    system("perf", "record", "-q", *options, "-o", file("perf.data"), "--", RUBY, "-e", PROGRAM, exception: true)
    imported = pitwall("import", "perf.data", "--out", "ours.pit", env: { "PITWALL_DEBUG" => nil })
    assert_equal 0, imported.status.exitstatus, imported.err
    Pitwall::Record.read(file("ours.pit"))
  end

  # [object, symbol] → the sum of periods, as `perf report` counts it. Addresses without a symbol are added up.
  def reported
    text = IO.popen(["perf", "report", "-i", file("perf.data"), "--no-children", "-g", "none", "--stdio", "--no-inline",
                     "--no-demangle", "-q", "-F", "period,dso,symbol", "-t", "|"], err: File::NULL, &:read)
    text.lines.grep(/\|/).each_with_object(Hash.new(0)) do |line, sums|
      period, object, symbol = line.split("|", 3).map(&:strip)
      mode, symbol = symbol.split(" ", 2)
      sums[mode == "[k]" ? ["[kernel]", named(symbol)] : [named(object), named(symbol)]] += period.to_i
    end
  end

  def named(text) = text.match?(/\A0x\h+\z/) ? "[unknown]" : text

  # The same of our recording.
  def ours(recording, weight)
    tree = Pitwall::Analyse::CallTreeBuilder.build(recording.segments, weights: [weight])
    Pitwall::Analyse::Flat.rows(tree, weight).each_with_object(Hash.new(0)) do |row, sums|
      object = row.method.path.empty? ? "[unknown]" : File.basename(row.method.path)
      sums[[object, row.method.name]] += row.own if row.own.positive?
    end
  end

  NOWHERE = ["[unknown]", "[unknown]"].freeze

  # perf script of 6.12 prints some samples without their stacks: those whose caller's address is in no object.
  # perf report counts their symbols all the same.
  def assert_reported(ours)
    reported = self.reported
    lost = IO.popen(["perf", "script", "-i", file("perf.data"), "-F", "+period", "--ns"], err: File::NULL, &:read)
             .scan(/(\d+) [\w-]+:\S* *\n\n/).sum { |(period)| period.to_i }
    assert_equal reported.sort, ours.sort if lost.zero?
    assert_equal reported[NOWHERE] + lost, ours.fetch(NOWHERE, 0)
    assert_equal reported.values.sum, ours.values.sum
    assert_empty ours.reject { |key, sum| key == NOWHERE || sum <= reported[key] }
    assert_operator lost, :<, reported.values.sum / 10
  end

  perf_test :self_time_of_every_symbol_is_that_of_perf_report do
    recording = record("-g", "-F", "999", "-e", "task-clock")
    assert_reported ours(recording, :cpu)
    assert_operator ours(recording, :cpu).size, :>, 30
  end

  perf_test :unwound_by_the_stacks_contents do
    recording = record("--call-graph", "dwarf,8192", "-F", "499", "-e", "cpu-clock")
    assert_reported ours(recording, :wall)
    assert_equal ours(recording, :wall), ours(recording, :cpu)
  end

  perf_test :counts_of_an_event do
    recording = record("-g", "-c", "50", "-e", "page-faults")
    assert_reported ours(recording, :captures)
  end

  perf_test :a_file_that_perf_refuses do
    File.binwrite(file("perf.data"), "PERFILE2#{"\0" * 200}")
    result = pitwall("import", "perf.data", "--out", "ours.pit", env: { "PITWALL_DEBUG" => nil })
    assert_equal [5, 1], [result.status.exitstatus, result.err.lines.size], result.err
    assert_match(/perf.data: perf can't read it: \S/, result.err)
  end
end
