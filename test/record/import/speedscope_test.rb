# frozen_string_literal: true

require_relative "../../test_helper"
require_relative "../../support/imported"

class ImportSpeedscopeTest < Minitest::Test
  include Imported

  FRAMES = [{ "name" => "main", "file" => "a.rb", "line" => 3 }, { "name" => "sum" }, { "name" => "each" }].freeze

  def file(*profiles, **more) = JSON.generate({ "shared" => { "frames" => FRAMES }, "profiles" => profiles }.merge(more))

  def sampled(samples, weights, unit: "nanoseconds", name: "t")
    { "type" => "sampled", "name" => name, "unit" => unit, "startValue" => 0, "samples" => samples, "weights" => weights }
  end

  def evented(*events, unit: "nanoseconds", start: 0)
    events = events.map { |type, at, frame| { "type" => type, "at" => at, "frame" => frame } }
    { "type" => "evented", "name" => "t", "unit" => unit, "startValue" => start, "endValue" => 0, "events" => events }
  end

  def test_samples
    recording = imported(file(sampled([[0, 1], [0], [0, 1], []], [5, 7, 8, 1]), sampled([[2]], [4], name: "other")))
    assert_equal({ %w[main sum] => 13, %w[main] => 7, ["(no stack)"] => 1, %w[each] => 4 }, stacks(recording))
    assert_equal %w[t other], recording.segments.first.threads.values.map(&:name)
    assert_equal 21, recording.segments.first.stat("elapsed_ns")
  end

  def test_units
    { "seconds" => 10**9, "milliseconds" => 10**6, "microseconds" => 1000 }.each do |unit, ns|
      assert_equal({ %w[main] => ns + ns / 2 }, stacks(imported(file(sampled([[0]], [1.5], unit: unit)))))
    end
    assert_equal({ %w[main] => 3 }, stacks(imported(file(sampled([[0]], [3], unit: "none"))), :captures))
    assert_equal({ %w[main] => 3 }, stacks(imported(file(sampled([[0]], [3], unit: "bytes"))), :bytes))
    assert_match(/: has the unit "days", which is none/, refused(file(sampled([[0]], [3], unit: "days"))))
  end

  def test_events_and_gaps
    profile = evented(["O", 10, 0], ["O", 12, 1], ["C", 15, 1], ["C", 16, 0], ["O", 20, 2], ["C", 25, 2], start: 4)
    recording = imported(file(profile))
    assert_equal({ %w[main] => 3, %w[main sum] => 3, ["(no stack)"] => 4, %w[each] => 5 }, stacks(recording))
    assert_equal 6, recording.segments.first.threads[1].start_ns
  end

  def test_what_is_damaged_is_named
    { "a frame of a stack is 3, not a number below 3" => sampled([[3]], [1]),
      "a frame of a stack is -1" => sampled([[-1]], [1]),
      "a weight is -1, not an amount" => sampled([[0]], [-1]),
      "a weight is \"x\", not a number" => sampled([[0]], ["x"]),
      "a profile has 1 samples and 2 weights" => sampled([[0]], [1, 2]),
      "a frame is closed that is not the innermost one" => evented(["O", 1, 0], ["C", 2, 1]),
      "an event is earlier than the one before" => evented(["O", 2, 0], ["C", 1, 0]),
      "a profile's type is \"other\"" => { "type" => "other" } }.each do |message, profile|
      assert_includes refused(file(profile)), message
    end
    assert_match(/a weight is 10000/, refused(file(sampled([[0]], [1e300]))))
  end
end
