# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require_relative "../support/shop_recording"
require_relative "../oracle/samples"
require "pitwall/analyse"
require "pitwall/show"

class ShowExportTest < Minitest::Test
  include Pitwall

  # Yields segments while their file exists: time lines are read from the file.
  def with_segments(bytes)
    Dir.mktmpdir do |dir|
      path = File.join(dir, "a.pit")
      File.binwrite(path, bytes)
      yield Record.read(path).segments
    end
  end

  def test_collapsed_stacks_hold_every_sample
    recording = RandomRecording.new(8)
    out = +""
    Show::Export::Collapsed.new(Analyse::Report.new(recording.read.segments)).write(out)
    sums = out.lines(chomp: true).to_h { |line| line.match(/\A(.+) (\d+)\z/).captures }
    expected = Hash.new(0)
    recording.weighed(:wall).each { |stack, wall| expected[stack.map(&:first).join(";")] += wall }
    assert_equal expected.reject { |_, wall| wall.zero? }.transform_values(&:to_s), sums
  end

  def test_names_in_collapsed_stacks_are_made_safe
    assert_equal ["a:b", "x y", "(anonymous)", "caf\u00e9"],
                 ["a;b", "x\ny", " \t", "caf\u00e9"].map { |name| Show::Export::Collapsed.name_of(name) }
  end

  def test_speedscope_holds_each_thread_in_time_order
    recording = RandomRecording.new(9)
    with_segments(recording.bytes) do |segments|
      %i[wall cpu].each do |weight|
        file = speedscope(segments, weight)
        frames = file["shared"]["frames"]
        assert_equal Oracle.total(recording.weighed(weight)), file["profiles"].sum { |profile| profile["weights"].sum }
        file["profiles"].each do |profile|
          assert_equal %w[sampled nanoseconds], profile.values_at("type", "unit")
          assert_equal profile["samples"].size, profile["weights"].size
          assert_equal profile["endValue"], profile["weights"].sum
          assert(profile["samples"].flatten.all? { |frame| frame.between?(0, frames.size - 1) })
          assert_equal expected_line(recording, profile["name"], weight),
                       profile["samples"].map { |stack| stack.map { |frame| frames[frame]["name"] } }
                                         .chunk_while { |a, b| a == b }.map(&:first)
        end
      end
    end
  end

  def test_speedscope_frames_name_file_and_line
    with_segments(ShopRecording.bytes(compress: true)) do |segments|
      file = speedscope(segments, :wall)
      assert_includes file["shared"]["frames"], { "name" => "Shop::Fib.fib", "file" => "/srv/app/lib/fib.rb",
                                                  "line" => 2 }
      assert_includes file["shared"]["frames"], { "name" => "Array#each" }
      assert_equal ["shop.rb 4242 main", "shop.rb 4242 puma srv tp 001"],
                   file["profiles"].map { |profile| profile["name"] }.sort
      assert_equal "https://www.speedscope.app/file-format-schema.json", file["$schema"]
    end
  end

  def test_speedscope_of_a_selection
    with_segments(ShopRecording.bytes) do |segments|
      profiles = speedscope(segments, :wall, Analyse::Selection.new(state: 1)).fetch("profiles")
      assert_equal [60_000_000], profiles.flat_map { |profile| profile["weights"] }
    end
  end

  private

  def speedscope(segments, weight, selection = Analyse::Selection.all)
    out = +""
    Show::Export::Speedscope.new(segments, weight, selection: selection).write(out)
    JSON.parse(out)
  end

  # Names of a thread's stacks, ordered by time.
  def expected_line(recording, name, weight)
    pid, thread = name.match(/(\d+) (?:t|thread )(\d+)\z/).captures.map(&:to_i)
    recording.samples.select do |sample|
      sample.segment == pid - 100 && sample.thread == thread && sample[weight].positive?
    end
             .map { |sample| sample.stack.map(&:first) }.chunk_while { |a, b| a == b }.map(&:first)
  end
end
