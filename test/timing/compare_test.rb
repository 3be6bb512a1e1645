# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"

# Verdicts of `pitwall compare` about time.
class CompareTimingTest < Minitest::Test
  include CommandLine

  def test_slower_is_status_1_and_says_by_how_much
    result = naps("--pairs", "8", "--format", "json", "--out", "-")
    assert_equal [1, ""], [result.status.exitstatus, result.err]
    object = JSON.parse(result.out)
    assert_equal ["pitwall/compare-1", ["NAP=0.01", "NAP=0.05"]], [object["schema"], object["sides"].map { |side| side["name"] }]
    wall = object["results"].find { |row| row["metric"] == "wall" }
    assert_equal ["slower", "lower", 8, "NAP=0.05"], wall.values_at("verdict", "better", "pairs", "side")
    assert_operator wall["ratio"]["low"], :>, 1.5
    assert_in_delta 0.99, wall["ratio"]["level"]
  end

  def test_faster_is_status_0
    result = naps("--pairs", "8", "--details", from: 0.05, to: 0.01)
    assert_equal 0, result.status.exitstatus, result.err
    assert_match(/\ANAP=0\.01 is [\d.]+ times faster than NAP=0\.05: wall time \S+ ms → \S+ ms \(99% interval: /, result.out)
    ["Median of each process", "8 pairs of fresh processes in random order", "Again:\npitwall compare --warmup 1 --budget 60 --pairs 8 --details --env NAP=0.05 --env NAP=0.01 -- sh -c"].each { |part| assert_includes result.out, part }
    assert_match(/\AMeasured values in \.pitwall\/\S+-compare\.jsonl\n\z/, result.err)
  end

  private

  def naps(*options, from: 0.01, to: 0.05)
    result = pitwall("compare", "--warmup", "1", "--budget", "60", *options, "--env", "NAP=#{from}", "--env", "NAP=#{to}",
                     "--", "sh", "-c", "exec sleep $NAP", env: { "PITWALL_DEBUG" => nil })
    result.tap { result.out.force_encoding(Encoding::UTF_8) }
  end
end
