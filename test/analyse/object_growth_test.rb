# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require "pitwall/analyse"

# Reported growth, for known numbers of objects.
class ObjectGrowthTest < Minitest::Test
  ObjectGrowth = Pitwall::Analyse::ObjectGrowth
  FULL = 1
  AT_END = 2
  LEAK = 5
  OTHER = 6

  # One point per second.
  # @param series [Hash{Integer => Array<Integer>}] site → living objects by point
  # @param full [Array<Integer>] points (from 1 on) that were full marks
  # @param births [Hash{Integer => Array}] number of a full mark → rows
  def recording(series, full: [], births: {}, rss: nil, stop: true, at_end: true, scale: 1, classes: {}, **head)
    count = series.each_value.map(&:size).max
    content = RecordingBuilder.build(mode: "none", stop: stop, **head) do |segment|
      series.each do |site, values|
        retained = stop ? values.last : 0
        counters = [values.max * 3, 0, values.max, 0, 0, 0, values.max * 40, values.max * 100, retained, 0,
                    retained * 100]
        segment.site(site, stack: [["Shop#order", "/app/shop.rb", 1, site]], class_name: classes.fetch(site, "String"),
                     counters: counters)
      end
      segment.allocation_totals(seen: series.each_value.sum { |values| values.max * 3 } * scale)
      (1..count).each do |number|
        flags = (full.include?(number) ? FULL : 0) | (number == count && at_end ? FULL | AT_END : 0)
        sites = series.to_h { |site, values| [site, values[number - 1].to_i] }.reject { |_, living| living.zero? }
        segment.living(number, at_ns: number * 1_000_000_000, sites: sites, rss: rss && rss[number - 1], flags: flags,
                       births: births[number])
      end
    end
    RandomRecording.read(content).segments
  end

  def growth(...) = ObjectGrowth.new(recording(...))

  def lines(...) = growth(...).rows.map(&:line)

  ALL = (1..20).to_a.freeze

  def test_a_leak
    found = growth({ LEAK => ALL.map { |at| at * 30 }, OTHER => Array.new(20, 500) }, full: ALL,
                   rss: ALL.map { |at| 1_000_000 + (at * 6000) })
    row = found.rows.fetch(0)
    assert_equal [1, "/app/shop.rb", LEAK, "String", "Shop#order"],
                 [found.rows.size, row.path, row.line, row.class_name, row[:method]]
    # 30 objects per second. A quarter of 20 s is warm-up, so points 5 to 20 are judged.
    assert_in_delta 1800, row.per_minute.point, 1e-6
    assert_equal [450, 600, 45_000], [row.objects, row.living, row.bytes]
    assert_equal 180_000, row.bytes_per_minute
    assert_in_delta 0.5, row.rss_share, 1e-6
    assert_equal [16, 16, 5_000_000_000],
                 [found.processes[0].judged.size, found.processes[0].full, found.processes[0].warm_up_ns]
    assert_equal 20, row.series.size
    assert_empty found.losses
    refute row.released
  end

  def test_what_does_not_grow
    full = ALL
    assert_empty lines({ LEAK => Array.new(20, 300) }, full: full)
    assert_empty lines({ LEAK => ALL.map { |at| [at * 30, 390].min } }, full: full), "filled once"
    assert_empty lines({ LEAK => ALL.map { |at| at % 7 * 50 } }, full: full), "sawtooth"
    assert_empty lines({ LEAK => ALL.map { |at| 700 - (at * 30) } }, full: full), "falls"
    assert_empty lines({ LEAK => ALL.map { |at| at / 4 } }, full: full), "too few"
    assert_empty lines({ LEAK => ALL.map { |at| at < 18 ? 100 : at * 100 } }, full: full), "only at the end"
  end

  # None of thousands of places with random numbers is reported.
  def test_chance
    random = Random.new(5)
    series = (5..1004).to_h { |site| [site, Array.new(14) { 100 + random.rand(100) }] }
    assert_empty lines(series, full: (1..14).to_a)
  end

  # Between full marks, numbers are upper bounds. Births give the lower bounds.
  def test_minor_collections_count_by_what_was_born_when
    living = ALL.map { |at| at * 30 }
    assert_empty lines({ LEAK => living }), "old objects may be dead"
    born = ALL.map { |at| [LEAK, at, 30, 3000] }
    assert_equal [LEAK], lines({ LEAK => living }, births: { 20 => born })
    # The living objects were just allocated; the earlier ones were freed.
    assert_empty lines({ LEAK => living }, births: { 20 => [[LEAK, 20, 600, 60_000]] })
    row = growth({ LEAK => living.map { |number| number + 7 } }, births: { 20 => born }).rows.fetch(0)
    assert_equal [600, 607], row.series[18].drop(1).then { |low, high| [low + 30, high + 30] }
    assert_equal [450, 45_000], [row.objects, row.bytes]
  end

  # Local variables of the main program are released at its end.
  def test_what_is_let_go_of_at_the_end
    living = ALL.map { |at| at * 30 }
    row = growth({ LEAK => living[0..18] + [0] }, full: ALL).rows.fetch(0)
    assert row.released
    assert_equal 570, row.living
    assert_empty lines({ LEAK => living[0..18] + [0] }, full: [3])
  end

  def test_a_killed_process_is_judged_by_its_full_marks
    living = ALL.map { |at| at * 30 }
    row = growth({ LEAK => living }, full: ALL, stop: false, at_end: false).rows.fetch(0)
    assert_equal 450, row.objects
    assert_nil row.bytes
    found = growth({ LEAK => living }, stop: false, at_end: false)
    assert_empty found.rows
    assert_match(/no full collection ended/, found.losses.join)
  end

  def test_too_few_points
    found = growth({ LEAK => [1, 2, 3, 40, 50, 60, 70] }, full: (1..7).to_a)
    refute found.judged?
    assert_match(/too few collections after warm-up to tell growth: 6, and it takes 8/, found.losses.join)
    assert_empty found.rows
  end

  def test_warm_up_can_be_chosen
    segments = recording({ LEAK => ALL.map { |at| [at * 30, 390].min } }, full: ALL)
    assert_empty ObjectGrowth.new(segments).rows
    assert_empty ObjectGrowth.new(segments, warm_up_ns: 0).rows
    segments = recording({ LEAK => ALL.map { |at| at < 8 ? 500 - (at * 50) : at * 30 } }, full: ALL)
    assert_empty ObjectGrowth.new(segments, warm_up_ns: 0).rows
    assert_equal [LEAK], ObjectGrowth.new(segments, warm_up_ns: 8_000_000_000).rows.map(&:line)
  end

  def test_samples_are_scaled
    row = growth({ LEAK => ALL.map { |at| at * 30 } }, full: ALL, scale: 10).rows.fetch(0)
    assert_equal [4500, 6000], [row.objects, row.living]
    assert_in_delta 18_000, row.per_minute.point, 1e-6
  end

  # Strings that Ruby creates internally have no class until Ruby code sees them.
  def test_objects_that_are_shown_late_count_with_their_class
    living = ALL.map { |at| at * 30 }
    content = RecordingBuilder.build(mode: "none") do |segment|
      stack = [["Shop#order", "/app/shop.rb", 1, 9]]
      segment.site(5, stack: stack, class_name: "", counters: [10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
      segment.site(6, stack: stack, class_name: "String", counters: [600, 0, 0, 0, 0, 0, 0, 60_000, 600, 0, 60_000])
      ALL.each do |at|
        segment.living(at, at_ns: at * 1_000_000_000, sites: { at == 20 ? 6 : 5 => living[at - 1] },
                       flags: at == 20 ? 3 : 1)
      end
    end
    rows = ObjectGrowth.new(RandomRecording.read(content).segments).rows
    assert_equal [["String", 600]], rows.map { |row| [row.class_name, row.living] }
  end

  def test_several_processes_add_up
    one = recording({ LEAK => ALL.map { |at| at * 30 } }, full: ALL, pid: 1)
    flat = recording({ LEAK => Array.new(20, 50) }, full: ALL, pid: 2)
    found = ObjectGrowth.new(one + recording({ LEAK => ALL.map { |at| at * 60 } }, full: ALL, pid: 3) + flat)
    row = found.rows.fetch(0)
    assert_equal [1350, 1800, 2], [row.objects, row.living, row.processes]
    assert_in_delta 5400, row.per_minute.point, 1e-6
    assert_equal 1200, row.series.last[1], "the line is that of the process that grew most"
  end

  # As in continuous recording: the same leak in three files of one process is one leak.
  def test_recordings_of_one_process_follow_each_other
    minute = RecordingBuilder::HEAD["started_at_ns"]
    files = [12, 20, 4].map do |points|
      minute += 60_000_000_000
      recording({ LEAK => Array.new(points) { |at| (at + 1) * 30 } }, full: ALL, started_at_ns: minute)
    end
    found = ObjectGrowth.new(files.flatten)
    assert_equal [[450, 600, 1]], found.rows.map { |row| [row.objects, row.living, row.processes] }
    assert_equal [[20, 3]], found.processes.map { |process| [process.points.size, process.files] }
    assert_equal ["one process has 3 recordings that follow each other, and each forgets the objects of the one " \
                  "before: the longest is judged"], found.losses
  end

  def test_nothing_was_recorded
    refute ObjectGrowth.new(RandomRecording.new(3).read.segments).any?
  end
end
