# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require "pitwall/analyse"
require "pitwall/show"
require "pitwall/views/hints"

# Predicted and actual savings, of recordings with known times.
class PredictionCheckTest < Minitest::Test
  Check = Pitwall::Analyse::PredictionCheck
  MAIN = ["Object#main", "/app/a.rb", 1, 3].freeze
  COPY = ["Task#copy", "/app/task.rb", 10, 12].freeze
  MARKING = ["(marking)", "", 0, 0, 2].freeze

  # Times of copying, of other code and of garbage collection in ms. `sites`: with allocation sites.
  def recording(copy:, rest: 500, gc: 200, runs: 20, sites: true, charged: 180)
    bytes = RecordingBuilder.build do |segment|
      segment.stats["elapsed_ns"] = (copy + rest + gc) * 1_000_000
      segment.thread 1, "main"
      segment.row stack: [MAIN, COPY], wall: copy * 1000, cpu: copy * 1000, captures: copy if copy.positive?
      segment.row stack: [MAIN], wall: rest * 1000, cpu: rest * 1000, captures: rest
      segment.row stack: [MAIN, MARKING], wall: gc * 1000, cpu: gc * 1000, captures: gc if gc.positive?
      runs.times { |n| segment.collection(start: n * 10_000_000, marking: gc * 1_000_000 / runs) }
      next unless sites

      segment.site 5, stack: [MAIN, COPY], counters: [900, 0, 900, 0, 0, 0, 36_000, 36_000, 0, charged * 1_000_000]
      segment.site 6, stack: [MAIN], counters: [100, 0, 100, 0, 0, 0, 4_000, 4_000, 0, (200 - charged) * 1_000_000]
    end
    RandomRecording.read(bytes).segments
  end

  def check(before, after, **more) = Check.of_recordings("copy", before: before, after: after, **more)

  def test_one_run_each
    found = check([recording(copy: 300)], [recording(copy: 0, gc: 20, runs: 2)])
    assert_in_delta 480e6, found.prediction.saving.point, 1
    assert_equal [480e6, 300e6, 180e6, 18.0], [found.saving, found.own, found.gc, found.runs].map(&:point)
    assert_equal [1e9, 520e6, [1, 1], :one_run, 1.0],
                 [found.before, found.after, found.sides, found.noise, found.elsewhere]
    # Nothing else differs, so the error is the usual difference between two runs.
    assert_equal [480e6 - 30e6, 480e6 + 30e6, nil],
                 [found.saving.low, found.saving.high, found.saving.level].map { |value| value&.round(3) }
    assert_equal [:within, nil], [found.verdict, found.reason]
  end

  def test_what_differs_elsewhere_is_doubted
    slower = check([recording(copy: 300)], [recording(copy: 0, rest: 600, gc: 20, runs: 2)])
    assert_in_delta 1.2, slower.elsewhere
    assert_in_delta 200e6, slower.saving.high - slower.saving.point, 1
    assert_equal :undecided, slower.verdict
    assert_match(/its interval contains a bound of the predicted one/, slower.reason)
  end

  def test_where_nothing_ran_elsewhere_one_run_tells_nothing
    found = check([recording(copy: 300, rest: 1)], [recording(copy: 0, rest: 1, gc: 20, runs: 2)])
    assert_equal [:undecided, nil, nil], [found.verdict, found.elsewhere, found.saving.low]
    assert_match(/too little ran outside the place/, found.reason)
  end

  def test_less_and_more_than_predicted
    assert_equal :less, check([recording(copy: 300)], [recording(copy: 250)]).verdict
    assert_equal :more,
                 check([recording(copy: 100, gc: 400, charged: 20)], [recording(copy: 0, gc: 0, runs: 0)]).verdict
  end

  # Welch's interval of synthetic runs, by hand: means 1010 and 510 ms, standard errors 5.774 each, 4 degrees of
  # freedom, t = 2.776.
  def test_several_runs_tell_the_noise
    before, after = [[300, 310, 320], [0, 10, 20]].map do |side|
      side.map { |copy| recording(copy: copy, gc: copy > 100 ? 200 : 0, runs: copy > 100 ? 20 : 0) }
    end
    found = check(before, after)
    assert_equal [:between_runs, [3, 3], 0.95], [found.noise, found.sides, found.saving.level]
    assert_in_delta 500e6, found.saving.point, 1
    assert_in_delta 2.776 * 1e6 * Math.sqrt(2 * 100 / 3.0), found.saving.high - found.saving.point, 1e5
    assert_equal [200e6, 200e6], [found.gc.low, found.gc.high]
    assert_equal [200e6, 20.0], [found.gc.point, found.runs.point]
    # The prediction is for one run: (310 + 180) ms
    assert_in_delta 490e6, found.prediction.saving.point, 1
    assert_equal [900, 20], [found.prediction.objects, found.prediction.all_runs]
  end

  def test_places_may_come_from_another_recording
    plain = recording(copy: 300, sites: false)
    assert_raises(Pitwall::UsageError) { check([plain], [recording(copy: 0)]) }
    followed = recording(copy: 900)
    followed.each { |segment| segment.header.fields["collectors"] = ["allocations"] }
    found = check([plain], [recording(copy: 0, gc: 20, runs: 2, sites: false)], more: [followed])
    assert_in_delta 480e6, found.prediction.saving.point, 1
    assert_equal :within, found.verdict
  end

  def test_against_what_compare_measured
    estimate = Pitwall::Analyse::Estimate.new(0.55, 0.52, 0.58, 0.99, 10)
    effect = Pitwall::Analyse::Effect.new(name: "x", side: "B", base: "A", metric: "wall", unit: "ns", a: 1.1e9,
                                          b: 0.6e9, ratio: estimate, verdict: :faster, pairs: 10)
    found = Check.of_effect("copy", effect, before: [recording(copy: 300)])
    assert_equal [:measured, :within, [10, 10]], [found.noise, found.verdict, found.sides]
    [0.45, 0.42, 0.48].zip(found.saving.to_a) { |part, value| assert_in_delta part * 1.1e9, value, 1 }
    refused = Check.of_effect("copy", effect.dup.tap { |other| other.ratio = nil; other.reason = "no steady state" },
                              before: [recording(copy: 300)])
    assert_equal [:undecided, "no steady state"], [refused.verdict, refused.reason]
  end

  def test_what_is_missing_is_one_line
    bytes = RecordingBuilder.build(mode: "none") { |segment| segment.site 5, stack: [MAIN, COPY] }
    error = assert_raises(Pitwall::UsageError) { check([RandomRecording.read(bytes).segments], [recording(copy: 0)]) }
    assert_match(/no samples in the recordings before the change/, error.message)
    assert_raises(Pitwall::UsageError) do
      Check.of_recordings("nothing", before: [recording(copy: 3)], after: [recording(copy: 0)])
    end
  end

  def test_views
    found = check([recording(copy: 300)], [recording(copy: 0, gc: 20, runs: 2)])
    view = Pitwall::Show::PredictionCheckView.new(found, base: "a.pit", side: "b.pit")
    text = view.lines(width: 78, palette: Pitwall::Show::Plain, hints: Pitwall::Views::Hints)
    assert_match(/\AAs predicted: removing copy was to save 480 ms/, text.first)
    assert_match(/saving\s+480 ms \(.*\)\s+480 ms \(450 ms … 510 ms\)/, text.join("\n"))
    assert_match(/GC runs avoided\s+18\S*.*\s18/, text.join("\n"))
    assert_match(/one run a side is not enough/, text.join("\n"))
    json = JSON.parse(JSON.generate(view.json))
    assert_equal ["copy", "within", "one_run", [1, 1], 1_000_000_000],
                 json.values_at("place", "verdict", "noise", "runs", "a_ns")
    assert_equal [480_000_000.0, nil], json["actual"]["saving_ns"].values_at("point", "level")
    assert_equal 480_000_000.0, json["predicted"]["saving_ns"]["point"]
  end
end
