# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require "pitwall/analyse"
require "pitwall/show"
require "tmpdir"

class GCTimelineTest < Minitest::Test
  MAIN = ["Object#main", "/app/a.rb", 1, 3].freeze
  WORK = ["Shop#sum", "/app/shop.rb", 10, 12].freeze
  STRING = ["String#+", "", 0, 0, 1].freeze
  MARKING = ["(marking)", "", 0, 0, 2].freeze

  # The file is kept, because rows are read again.
  def setup = @dir = Dir.mktmpdir("pitwall-gc-")

  def teardown = FileUtils.rm_rf(@dir)

  def read(bytes)
    path = File.join(@dir, "a.pit")
    File.binwrite(path, bytes)
    Pitwall::Analyse::GCTimeline.new(Pitwall::Record.read(path).segments)
  end

  def timeline(**head, &block) = read(RecordingBuilder.build(**head, &block))

  # Elapsed 2 s (RecordingBuilder's STAT).
  def example
    timeline do |segment|
      segment.thread 1, "main"
      segment.row stack: [MAIN], wall: 100_000
      segment.row stack: [MAIN, WORK, STRING], wall: 100_000
      segment.row stack: [MAIN, WORK, MARKING], wall: 50_000
      segment.row stack: [MAIN], wall: 1_750_000
      segment.collection(start: 200_000_000, span: 1_000_000_000, marking: 60_000_000, sweeping: 40_000_000, pauses: 5,
                         longest: 50_000_000, majors: 1, cause: 2, major_cause: 2, allocated: 10)
      segment.collection(start: 1_500_000_000, marking: 1_000_000, sweeping: 1_000_000, cause: 1, allocated: 20)
      segment.collection(start: 1_600_000_000, marking: 3_000_000, cause: 1, allocated: 30)
    end
  end

  def test_totals_causes_and_pauses
    line = example
    assert_equal [3, 1, 64_000_000, 41_000_000, 105_000_000, 60],
                 [line.count, line.majors, line.marking_ns, line.sweeping_ns, line.total_ns, line.allocated]
    assert_in_delta 0.0525, line.share
    assert_equal [[:malloc, :oldgen, 1, 100_000_000, 50_000_000, 10], [:newobj, nil, 2, 5_000_000, 3_000_000, 50]],
                 line.causes.map(&:to_a)
    pauses = line.pauses
    assert_equal [7, 3.5, 50_000_000, nil, nil], pauses.to_a
    refute line.merged?
  end

  # A run that began before the recording does not count. Fewer than five runs have no quantiles.
  def test_quantiles_are_of_runs_and_of_enough_of_them
    [4, 5].each do |runs|
      line = timeline do |segment|
        segment.collection(start: 0, marking: 90_000_000, runs: 0)
        (1..runs).each { |n| segment.collection(start: n * 100_000_000, marking: n * 1_000_000) }
      end
      assert_equal [runs + 1, 90_000_000, (3_000_000 if runs == 5)],
                   [line.pauses.count, line.pauses.longest_ns, line.pauses.median_ns]
      assert_in_delta 4_960_000, line.pauses.p99_ns, 1 if runs == 5
      text = view(line, width: 120).join("\n")
      assert_equal runs == 5, text.include?("of each run's longest: median 3.00 ms")
      assert_match(/^ *90\.0 ms +\S+ +\S+ +earlier /, text)
    end
  end

  # The parts add up to the whole time, for any number of parts.
  def test_buckets_add_up
    line = example
    [1, 2, 7, 10, 93, 1000].each do |parts|
      buckets = line.buckets(parts)
      assert_in_delta 64_000_000, buckets.sum(&:marking_ns), 100
      assert_in_delta 41_000_000, buckets.sum(&:sweeping_ns), 100
      assert_equal [3, 1, 2_000_000_000], [buckets.sum(&:runs), buckets.sum(&:majors), buckets.sum(&:wall_ns)]
      assert_equal buckets.map(&:to_ns)[0..-2], buckets.map(&:from_ns).drop(1)
    end
    # The long pause counts where it was: 50 of 100 ms, and a fifth of the other 50.
    assert_in_delta 0.06 / 0.2, line.buckets(10)[1].share, 0.001
    assert_equal 0, line.buckets(10)[9].share
  end

  def test_the_code_that_a_long_pause_interrupted
    longest = example.longest(2)
    assert_equal [[200_000_000, 50_000_000, "main", "Shop#sum", "/app/shop.rb", 12],
                  [1_600_000_000, 3_000_000, "main", "Object#main", "/app/a.rb", 3]],
                 (longest.map do |pause|
                   [pause.at_ns, pause.ns, pause.thread, pause.method.name, pause.path, pause.line]
                 end)
  end

  def test_ruby_s_own_methods_are_nobody_s_code
    line = timeline do |segment|
      segment.row stack: [MAIN, ["GC.start", "<internal:gc>", 1, 34], MARKING], wall: 1000
      segment.collection(start: 10, marking: 500)
    end
    assert_equal ["Object#main"], line.longest(3).map { |pause| pause.method.name }
  end

  def test_without_samples_or_collections
    line = timeline { |segment| segment.collection(start: 10, marking: 500, thread: 9) }
    assert_equal [nil], line.longest(3).map(&:method)
    empty = timeline { |_| nil }
    assert_equal [0, 0.0, [], []], [empty.count, empty.share, empty.causes, empty.longest(3)]
    assert_equal 0, empty.pauses.longest_ns
    assert_equal ["the garbage collector did not run"], view(empty)
    assert_equal 0, Pitwall::Analyse::GCTimeline.new([]).buckets(3).sum(&:wall_ns)
  end

  # Runs in a hostile file may last for ever.
  def test_what_lies_beyond_the_end_is_not_drawn
    line = timeline do |segment|
      segment.collection(start: 1 << 58, span: 1 << 59, marking: 1 << 50, sweeping: 5, longest: 3)
    end
    assert_equal 0, line.buckets(50).sum(&:marking_ns)
    assert_equal 1, line.count
  end

  def test_processes_stand_on_one_time_line
    builder = RecordingBuilder.new
    2.times do |n|
      builder.segment(pid: n + 1, started_at_ns: 1_000_000_000 * (n + 1)) do |segment|
        segment.collection(start: 500_000_000, marking: 10_000_000 * (n + 1))
      end
    end
    line = read(builder.bytes)
    assert_equal [[1, 500_000_000], [2, 1_500_000_000]], line.runs.map { |run| [run.pid, run.at_ns] }
    assert_equal [1, 2, 1].map { |processes| processes * 1_000_000_000 }, line.buckets(3).map(&:wall_ns)
    assert_equal [10_000_000, 20_000_000, 0], line.buckets(3).map { |bucket| bucket.marking_ns.round }
  end

  def test_the_view_fits_its_width
    [60, 80, 120, 200].each do |width|
      text = view(example, width: width)
      text.each do |line|
        assert_operator Pitwall::Show::Text.width(line), :<=, width, line
        refute_match(/\s\z/, line)
      end
      ["3 runs (1 major) took 105 ms, 5.2% of the wall time", "7 pauses", "no free slot",
       "malloc'd bytes; major: old objects", "Shop#sum",
       "▲"].each { |part| assert_includes text.join("\n").gsub(/\n  /, " "), part }
    end
  end

  def view(line, width: 80)
    location = Pitwall::Show::Location.new
    Pitwall::Show::GCView.new(width: width, palette: Pitwall::Show::Plain, location: location).lines(line)
  end
end
