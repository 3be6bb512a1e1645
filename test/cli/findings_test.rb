# frozen_string_literal: true

require "json"
require "shellwords"
require_relative "../test_helper"
require_relative "../support/command_line"

# Programs with a planted problem (test/fixtures/planted): the report begins with a finding that names the line.
class FindingsTest < Minitest::Test
  include CommandLine

  PLANTED = File.expand_path("../fixtures/planted", __dir__)
  # Program → kind of the finding, file and line. String#+ is a frame of its own in compiled code only.
  PROFILED = {
    "quadratic_loop" => ["repeated_scan", "quadratic_loop.rb", 9], "garbage" => ["garbage", "garbage.rb", 8],
    "quadratic_string" => [%w[heavy_line repeated_scan], "quadratic_string.rb", 10],
    "slow_boot" => ["boot", "slow_boot.rb", 5],
    "lock" => ["lock", "lock.rb", 13], "child" => ["waiting", "child.rb", 5],
    "requests" => ["heavy_line", "requests.rb", 9]
  }.freeze
  ALLOCATED = {
    "needless_objects" => ["allocating_line", "needless_objects.rb", 6], "leak" => ["retained", "leak.rb", 8]
  }.freeze

  def record(verb, name, *more)
    program = [RUBY, "--disable-gems", "-I#{Checkout::ROOT}/lib", "#{name}.rb"]
    options = ["--record", file("#{name}.pit"), "--format", "json", "--out", "-"]
    result = pitwall(verb, *options, *more, "--", *program, dir: PLANTED)
    assert_equal 0, result.status.exitstatus, result.err
    JSON.parse(result.out).fetch("findings")
  end

  # The main program's path is as it was typed, and absolute on other Rubies.
  def assert_found((kinds, path, line), findings)
    finding = findings.find { |one| Array(kinds).include?(one["kind"]) }
    assert finding, "no #{kinds} among #{findings.map { |one| one["text"] }}"
    assert_equal [path, line], [File.basename(finding["path"]), finding["line"]], finding["text"]
    assert_operator findings.size, :<=, 3
    finding
  end

  PROFILED.each do |name, expected|
    define_method(:"test_#{name}") { assert_found(expected, record("profile", name)) }
  end

  ALLOCATED.each do |name, expected|
    define_method(:"test_#{name}") { assert_found(expected, record("allocations", name)) }
  end

  def test_growth
    finding = record("allocations", "growth", "--growth").first
    assert_equal "growth", finding["kind"]
    assert_includes [8, 9], finding["line"], "the order, or its name"
    assert_operator finding["figures"]["objects_per_minute"], :>, 0
    lines = [finding["line"], *finding["figures"]["others"].map(&:last)]
    assert_equal [8, 9], lines.uniq.sort, "the order and its name are one leak: both lines are named"
    assert_match(/; so do those from growth\.rb:[89]\.\z/, finding["text"])
    shown = pitwall(*Shellwords.split(finding["more"]).drop(1), dir: PLANTED)
    assert_equal 0, shown.status.exitstatus, shown.err
    assert_match(/ growth\.rb:9$/, shown.out)
    refute_match(/growth\.rb:1[01]$/, shown.out)
  end

  def test_a_route_that_takes_most_of_the_time
    route = record("profile", "requests").find { |finding| finding["kind"] == "route" }
    assert_equal [{ "route" => "GET /report" }, 10], [route["label"], route["figures"]["requests"]]
    more = Shellwords.split(route["more"])
    shown = pitwall(*more.drop(1), dir: PLANTED)
    assert_equal 0, shown.status.exitstatus, shown.err
    assert_match(/^only route=GET \/report/, shown.out)
  end

  # The suite writes on standard output as well.
  def test_a_slow_test
    program = [RUBY, "--disable-gems", *gem_options("minitest"), "slow_test.rb", "--no-plugins"]
    result = pitwall("profile", "--quiet", "--record", file("x.pit"), "--", *program, dir: PLANTED)
    assert_equal 0, result.status.exitstatus, result.err
    findings = JSON.parse(pitwall("report", file("x.pit"), "--format", "json", dir: PLANTED).out)["findings"]
    finding = findings.find { |one| one["kind"] == "slow_test" }
    assert_equal ["CartTest#test_import", "tests", 6, { "test" => "CartTest#test_import" }],
                 [finding["subject"], finding["of"], finding["figures"]["tests"], finding["label"]]
    assert_match(/\A\d+% of the time of 6 tests \([\d.]+ m?s\) is in CartTest#test_import\.\z/, finding["text"])
    shown = pitwall(*Shellwords.split(finding["more"]).drop(1), dir: PLANTED)
    assert_equal 0, shown.status.exitstatus, shown.err
    assert_match(/^only request 1 \(test=CartTest#test_import/, shown.out)
    [finding["proof"], shown.out[/proof: (.*)/, 1]].each do |proof|
      assert_match(/\Apitwall compare --dirty -- /, proof)
    end
  end

  # Calls have no lines: what is heavy is named by its method, not by the one whose code the file begins with.
  def test_a_trace_names_the_method
    finding = record("trace", "quadratic_loop").first
    assert_equal "repeated_scan", finding["kind"]
    assert_match(/Orders\.distinct/, finding["method"])
    shown = pitwall(*Shellwords.split(finding["more"]).drop(1), dir: PLANTED)
    assert_equal 0, shown.status.exitstatus, shown.err
    assert_includes shown.out, "Array#include?"
  end

  # `compare` takes one recording a side.
  def test_two_recordings_have_findings_without_a_proof
    2.times { |number| record("profile", "requests"); File.rename(file("requests.pit"), file("#{number}.pit")) }
    paths = [file("0.pit"), file("1.pit")]
    findings = JSON.parse(pitwall("report", *paths, "--format", "json", dir: PLANTED).out)["findings"]
    assert_equal [nil], findings.select { |finding| finding["kind"] == "route" }.map { |finding| finding["proof"] }
    %w[text markdown].each do |format|
      shown = pitwall("report", *paths, "--format", format, dir: PLANTED).out
      refute_includes shown, "NEW.pit"
    end
  end

  def test_nothing_stands_out
    assert_empty record("profile", "nothing")
    assert_empty record("allocations", "nothing")
  end

  # What a finding suggests can be typed as it stands, and every format tells the same.
  def test_commands_run_and_formats_agree
    finding = record("profile", "quadratic_loop").first
    shown = pitwall(*Shellwords.split(finding["more"]).drop(1), dir: PLANTED)
    assert_equal 0, shown.status.exitstatus, shown.err
    percent = (finding["share"] * 100).round
    row = shown.out.lines.find { |line| line.match?(/\A *\d.*quadratic_loop\.rb:9$/) }
    assert_in_delta percent, row[/[\d.]+/].to_f, 2, "the view has the finding's share"
    assert_match(/\Apitwall compare --dirty -- .*quadratic_loop\.rb\z/, finding["proof"])
    text = pitwall("report", file("quadratic_loop.pit"), dir: PLANTED).out
    assert_includes text.gsub(/\s+/, " "), finding["text"]
    assert_operator text.index(finding["text"][0, 20]), :<, text.index("self"), "findings come first"
    markdown = pitwall("report", file("quadratic_loop.pit"), "--format", "markdown", dir: PLANTED).out
    assert_includes markdown, "Array\\#include?"
  end
end
