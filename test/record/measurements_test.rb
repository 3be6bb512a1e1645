# frozen_string_literal: true

require "minitest/mock"
require_relative "../test_helper"
require "tmpdir"
require "pitwall/record/measurements"

# The files of measurements that `bench` and `compare` write.
class MeasurementsTest < Minitest::Test
  M = Pitwall::Record::Measurements

  def setup
    @dir = Dir.mktmpdir("pitwall-measurements")
    @path = File.join(@dir, "x.jsonl")
  end

  def teardown = FileUtils.rm_rf(@dir)

  def sample(block, side: "A")
    values = { "wall" => [1.5, 2], "objects" => [3] }
    Pitwall::Record::Sample.new(side: side, name: "join", block: block, order: 0, values: values,
                                iterations: 20, first_ns: 5, warmup: 3, digest: nil, notes: [:unsteady])
  end

  def write(finish: true)
    writer = M::Writer.new(@path, "kind" => "compare", "settings" => { "alpha" => 0.01 })
    writer.plan("join", 60)
    3.times { |block| writer.add(sample(block)) }
    writer.finish("duration_ns" => 7) if finish
  end

  def test_what_is_written_is_read
    write
    contents = M.read(@path)
    assert M.file?(@path)
    assert_equal (0..2).map { |block| sample(block) }, contents.samples
    assert_equal [{ "join" => 60 }, 7, true], [contents.plans, contents.tail["duration_ns"], contents.ended?]
    assert_equal 0.01, contents.head.dig("settings", "alpha")
  end

  # Counts are added when the file has its end already.
  def test_counts_of_runs_of_their_own
    writer = M::Writer.new(@path, "kind" => "compare")
    counts = M::Counts.new(name: "join", metric: "instructions", sides: { "A" => [5.0, nil], "B" => [7.0, 8.0] })
    writer.count(counts)
    refute_path_exists @path
    writer.add(sample(0))
    writer.finish("duration_ns" => 7)
    writer.count(counts)
    contents = M.read(@path)
    assert_equal [[counts], true], [contents.counts, contents.ended?]
    File.write(@path, "{\"counts\":\"join\",\"metric\":\"none\",\"sides\":{}}\n", mode: "a")
    assert_match(/line 5 has no counts/, assert_raises(Pitwall::BadRecording) { M.read(@path) }.message)
  end

  # The file ends like one whose writer got SIGKILL in the middle of a line.
  def test_a_file_cut_anywhere_gives_what_was_whole
    write
    bytes = File.binread(@path)
    first_line = bytes.index("\n") + 1
    (first_line..bytes.bytesize).step(7) do |size|
      File.binwrite(@path, bytes[0, size])
      whole = bytes[0, size].lines.count { |line| line.end_with?("\n") && line.include?('"block"') }
      assert_equal whole, M.read(@path).samples.size
    end
  end

  def test_foreign_and_damaged_files_are_refused_in_one_line
    ["", "x\n", "{}\n", "[1]\n", "{\"schema\":\"pitwall/measurements-9\"}\n", "\xff\xfe\n"].each do |text|
      File.binwrite(@path, text)
      error = assert_raises(Pitwall::BadRecording, text) { M.read(@path) }
      assert_match(/\A#{Regexp.escape(@path)}: [^\n]+\z/, error.message)
      assert_equal 5, error.status
    end
    error = assert_raises(Pitwall::UsageError) { write }
    assert_match(/holds no measurements/, error.message)
    File.unlink(@path)
    write
    File.write(@path, "{\"block\": 1, \"name\": \"a\", \"values\": {\"wall\": [\"x\"]}}\n", mode: "a")
    assert_match(/line 7/, assert_raises(Pitwall::BadRecording) { M.read(@path) }.message)
    assert_raises(Pitwall::BadRecording) { M.read(File.join(@dir, "none")) }
  end

  def test_a_file_that_cannot_be_written
    error = assert_raises(Pitwall::UsageError) { M::Writer.new(File.join(@dir, "no/such/x.jsonl"), {}) }
    assert_match(/\Acannot write .*: No such file or directory\z/, error.message)
    assert_equal [:another_file], error.advice.keys
  end

  def test_a_foreign_file_is_left_alone
    File.write(@path, "mine")
    error = assert_raises(M::Writer::Taken) { M::Writer.new(@path, {}) }
    assert_equal "#{@path}: exists and holds no measurements; name another file", error.message
    assert_equal "mine", File.read(@path)
  end

  def test_what_can_not_be_read_is_no_such_file
    write
    assert M.file?(@path)
    File.stub(:readable?, false) { refute M.file?(@path) }
  end
end
