# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require_relative "../support/drawn_view"
require "pitwall/analyse"
require "pitwall/show"

# Files of one process that follow each other, as continuous recording writes them.
class ProcessesTest < Minitest::Test
  SECOND = 1_000_000_000
  START = RecordingBuilder::HEAD["started_at_ns"]

  # [pid, start in seconds]; each file lasts two seconds.
  def segments(*parts)
    parts.map do |pid, start, threads = { 1 => ["main", 101], 2 => ["", 102], 3 => ["pitwall continuous", 103] }|
      RandomRecording.read(RecordingBuilder.build(pid: pid, started_at_ns: START + start * SECOND) do |segment|
        threads.each { |id, (name, native_id)| segment.thread(id, name, native_id: native_id) }
        threads.each_key { |id| segment.row(thread: id, stack: [["m", "/a.rb", 1, 1]], wall: 10, cpu: 5) }
      end).segments.first
    end
  end

  def test_files_that_follow_each_other_are_one_process
    all = segments([7, 0], [8, 0], [7, 2], [7, 600], [8, 5])
    index = ->(part) { all.index { |one| one.equal?(part) } }
    assert_equal [[0, 2, 3], [1, 4]],
                 Pitwall::Analyse::Processes.of(all).map { |parts| parts.map { |part| index.(part) } }
    assert_equal 2, Pitwall::Analyse::Summary.new(all).processes
    title = DrawnView.drawn(Pitwall::Analyse::Report.new(all), file: "d", width: 100).lines.first
    assert_match(/ 2 processes$/, title)
  end

  # Processes of containers, or one file that is given twice.
  def test_what_overlaps_is_not_one_process
    assert_equal [1, 1, 1], Pitwall::Analyse::Processes.of(segments([1, 0], [1, 1], [1, 0])).map(&:size)
    assert_equal [2, 1], Pitwall::Analyse::Processes.of(segments([1, 0], [1, 1], [1, 2])).map(&:size)
    assert_equal [1, 1], Pitwall::Analyse::Processes.of(segments([nil, 0], [nil, 9])).map(&:size)
  end

  def test_a_thread_is_one_row
    rows = Pitwall::Analyse::Threads.rows(segments([7, 0], [7, 2], [8, 0]))
    assert_equal [[7, "", 20_000], [7, "main", 20_000], [8, "", 10_000], [8, "main", 10_000]],
                 rows.map { |row| [row.pid, row.name, row.wall] }.sort
    assert_equal 60_000, rows.sum { |row| row.states.values.sum }
  end

  # Lanes do not depend on ids. Each segment has threads with samples, calls or requests.
  def test_lanes
    all = segments([7, 0], [8, 0], [7, 2, { 2 => ["main", 101], 1 => ["", 102], 4 => ["late", 104] }],
                   [7, 4, { 9 => ["main", 101], 8 => ["main", 77] }])
    lanes = Pitwall::Analyse::Threads.lanes(all)
    first, other, second, third = lanes.values_at(*all)
    assert_equal [first[1], first[2]], [second[2], second[1]]
    assert_equal first[1], third[9]
    assert_empty first.values & other.values
    assert_equal (0..7).to_a, lanes.values.flat_map(&:values).uniq.sort
    assert Pitwall::Analyse::Threads.own?("pitwall continuous")
    refute Pitwall::Analyse::Threads.own?("main")
  end

  # Threads that share a native thread (M:N) cannot be matched between files.
  def test_threads_that_share_a_native_one_stay_apart
    shared = { 1 => ["main", 101], 2 => ["", 102], 3 => ["", 102] }
    rows = Pitwall::Analyse::Threads.rows(segments([7, 0, shared], [7, 2, shared]))
    assert_equal [10_000] * 4 + [20_000], rows.map(&:wall).sort
  end
end
