# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require "pitwall/analyse"
require "pitwall/record"

# Changes of requests between recordings, on synthetic recordings.
class RequestChangeTest < Minitest::Test
  MS = 1_000_000
  SHOW = { "route" => "orders#show" }.freeze
  HOME = { "route" => "home#index" }.freeze
  LINE = ["Order.recent", "/srv/app/order.rb", 1, 4].freeze

  # times: labels → ms of each request. queries: labels → queries of each request. known: number of requests that are
  # recorded one by one.
  def recording(times, queries: {}, known: nil)
    bytes = RecordingBuilder.build do |segment|
      segment.row(stack: [["Server#run", "/srv/app/server.rb", 1, 2]], wall: 10_000, cpu: 10_000)
      clock = 0
      times.each do |labels, list|
        asked = queries.fetch(labels, [0] * list.size)
        list.each_with_index do |ms, at|
          clock += ms * MS
          next unless known.nil? || at < known

          segment.mark(labels, end_ns: clock.round, ns: (ms * MS).round)
          segment.queries_of(clock.round, digest: 7, place: LINE, count: asked[at]) if asked[at].positive?
        end
        segment.work(labels, count: list.size, ns: (list.sum * MS).round)
        segment.queries(labels, digest: 7, place: LINE, works: asked.count(&:positive?), count: asked.sum,
                        most: asked.max) if asked.sum.positive?
      end
    end
    RandomRecording.read(bytes).segments
  end

  def change(befores, afters, **options)
    Pitwall::Analyse::RequestChange.new([befores, afters], base: "a.pit", side: "b.pit", **options)
  end

  def around(mean, count, random) = Array.new(count) { mean * (0.9 + (0.2 * random.rand)) }

  def test_time_a_request_of_each_route_that_both_have
    random = Random.new(1)
    found = change([recording({ SHOW => around(30, 40, random), HOME => around(2, 40, random),
                                { "route" => "gone" } => [3.0] * 9 })],
                   [recording({ SHOW => around(10, 40, random), HOME => around(2, 40, random),
                                { "route" => "new" } => [3.0] * 9 })]).effects
    assert_equal [["orders#show", "request_time", "ns", :faster], ["home#index", "request_time", "ns", :undecided]],
                 found.map { |effect| effect.to_h.values_at(:name, :metric, :unit, :verdict) }
    show, home = found
    assert_in_delta 1 / 3.0, show.ratio.point, 0.02
    assert_operator show.ratio.high, :<, 0.4
    assert_includes home.ratio.low..home.ratio.high, 1.0
    assert_in_delta 0.995, show.ratio.level
    assert_equal :slower,
                 change([recording({ SHOW => around(10, 40, random) })],
                        [recording({ SHOW => around(12, 40, random) })]).effects.first.verdict
  end

  # One slow second contains many requests that are slow for one reason.
  def test_requests_that_followed_each_other_are_one_value
    slow = [2.0] * 400 + [6.0] * 100
    quick = [2.0] * 500
    effect = change([recording({ SHOW => quick })], [recording({ SHOW => slow })]).effects.first
    assert_equal :undecided, effect.verdict
  end

  def test_queries_a_request_are_exact_where_each_asks_as_often
    many = [recording({ SHOW => [5.0] * 6 }, queries: { SHOW => [200] * 6 })]
    few = [recording({ SHOW => [5.0] * 9 }, queries: { SHOW => [2] * 9 })]
    effect = change(many, few).effects.last
    assert_equal ["queries_per_request", "count", 200.0, 2.0, :fewer, true],
                 effect.to_h.values_at(:metric, :unit, :a, :b, :verdict, :exact)
    assert_in_delta 0.01, effect.ratio.point
    assert_equal [:more, :same], [change(few, many), change(few, few)].map { |one| one.effects.last.verdict }
    none = [recording({ SHOW => [5.0] * 9 })]
    assert_equal [:fewer, 0.0], change(few, none).effects.last.to_h.values_at(:verdict, :b)
    assert_nil change(none, few).effects.last.ratio.point
  end

  def test_queries_that_differ_from_request_to_request_have_an_interval
    counts = Array.new(40) { |number| 95 + (number % 11) }
    fewer = counts.map { |count| count / 10 }
    effect = change([recording({ SHOW => [5.0] * 40 }, queries: { SHOW => counts })],
                    [recording({ SHOW => [5.0] * 40 }, queries: { SHOW => fewer })]).effects.last
    assert_equal [:fewer, false], [effect.verdict, effect.exact]
    assert effect.ratio.interval?
  end

  def test_what_too_few_or_unknown_requests_can_not_say
    random = Random.new(2)
    few = change([recording({ SHOW => [30.0] * 4 })], [recording({ SHOW => [1.0] * 40 })]).effects.first
    assert_equal [:undecided, "4 requests; 5 are needed on each side"], [few.verdict, few.reason]
    partly = [recording({ SHOW => around(30, 40, random) }, known: 10)]
    effect = change(partly, partly).effects.first
    assert_match(/\Anot every request was recorded one by one \(only the 64 slowest of each second\)/, effect.reason)
    assert_in_delta 30, effect.a / MS, 2
  end

  # The slowest requests take longer than all. So a side whose slowest requests are faster is faster.
  def test_the_slowest_requests_bound_a_change
    random = Random.new(5)
    whole = [recording({ SHOW => around(30, 40, random) })]
    slowest = [recording({ SHOW => around(3, 400, random) }, known: 60)]
    fixed, broken = change(whole, slowest).effects.first, change(slowest, whole).effects.first
    assert_equal %i[faster slower], [fixed.verdict, broken.verdict]
    assert_equal "only the slowest requests of b.pit were recorded one by one and compared, " \
                 "without the most extreme: the trimmed mean changed by at least this", fixed.reason
    assert_equal :undecided,
                 change([recording({ SHOW => around(3, 40, random) })],
                        [recording({ SHOW => around(30, 400, random) }, known: 60)]).effects.first.verdict
  end

  # times: ms of each request, by second. known: number of the slowest requests of each second that are recorded one
  # by one.
  def by_second(seconds, known:)
    bytes = RecordingBuilder.build do |segment|
      segment.row(stack: [["Server#run", "/srv/app/server.rb", 1, 2]], wall: 10_000, cpu: 10_000)
      sum = [0, 0]
      seconds.each_with_index do |list, at|
        list.max(known).each_with_index do |ms, number|
          segment.mark(SHOW, end_ns: (at * 1_000_000_000) + ((number + 1) * 10_000_000), ns: (ms * MS).round)
        end
        sum = [sum[0] + list.size, sum[1] + (list.sum * MS).round]
        segment.work(SHOW, count: sum[0], ns: sum[1])
        segment.flush
      end
    end
    RandomRecording.read(bytes).segments
  end

  # A busy server answers more requests per second than are recorded one by one. Sums of each second include all.
  def test_sums_of_each_second_tell_where_requests_are_not_known_one_by_one
    random = Random.new(6)
    seconds = ->(mean, count) { Array.new(count) { around(mean, 200, random) } }
    before, after = [by_second(seconds.(40, 6), known: 20)], [by_second(seconds.(8, 5), known: 20)]
    effect = change(before, after).effects.first
    assert_equal [:faster, nil], [effect.verdict, effect.reason]
    assert_in_delta 40, effect.a / MS, 1
    assert_in_delta 0.2, effect.ratio.point, 0.01
    assert_equal :slower, change(after, before).effects.first.verdict
    short = [by_second(seconds.(40, 2), known: 20)]
    assert_match(/requests in 3 seconds or more/, change(short, short).effects.first.reason)
  end

  # The first requests load code. Their times must not matter.
  def test_a_second_of_warm_up_does_not_hide_a_change
    random = Random.new(8)
    seconds = ->(mean) { [Array.new(100) { mean * 30 }] + Array.new(6) { around(mean, 100, random) } }
    effect = change([by_second(seconds.(4), known: 9)], [by_second(seconds.(2), known: 9)]).effects.first
    assert_equal :faster, effect.verdict
    assert_in_delta 0.5, effect.ratio.point, 0.02
  end

  # A second with few requests is merged with its neighbours.
  def test_false_alarms_of_seconds_are_rare
    random = Random.new(7)
    seconds = -> { Array.new(4) { around(10, 100 + random.rand(100), random) }.push(around(10, 2, random)) }
    alarms = 300.times.count do
      change([by_second(seconds.(), known: 9)], [by_second(seconds.(), known: 9)]).effects.first.then do |one|
        one.ratio.low > 1 || one.ratio.high < 1
      end
    end
    assert_operator alarms, :<=, 9
  end

  # Three recordings per side show the differences between runs. Requests then need not be recorded one by one.
  def test_recordings_of_three_runs
    random = Random.new(3)
    runs = lambda do |mean|
      Array.new(3) { recording({ SHOW => around(mean * (0.98 + (0.04 * random.rand)), 40, random) }, known: 10) }
    end
    found = change(runs.(30), runs.(10))
    assert found.between_runs
    assert_equal :faster, found.effects.first.verdict
    # A clear difference between requests within one run is not larger than the difference between runs.
    shifting = ->(means) { means.map { |mean| recording({ SHOW => around(mean, 40, random) }) } }
    assert_equal :undecided, change(shifting.([10, 14, 18]), shifting.([13, 17, 21])).effects.first.verdict
  end

  def test_labels_narrow_it
    both = { SHOW.merge("tenant" => "a") => [30.0, 31.0] * 5, SHOW.merge("tenant" => "b") => [3.0, 3.1] * 5 }
    effect = change([recording(both)], [recording(both)], labels: { "tenant" => "b" }).effects.first
    assert_in_delta 3.05, effect.a / MS, 0.1
  end

  def test_false_alarms_are_rare
    random = Random.new(4)
    alarms = 300.times.count do
      before, after = [1, 2].map { [recording({ SHOW => around(10, 30, random) })] }
      change(before, after).effects.first.verdict != :undecided
    end
    assert_operator alarms, :<=, 9 # 3 are expected
  end

  def test_without_requests_there_is_nothing
    refute_predicate change([recording({})], [recording({ SHOW => [1.0] * 9 })]), :any?
  end
end
