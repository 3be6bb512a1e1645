# frozen_string_literal: true

require_relative "../../test_helper"
require_relative "../../support/imported"

# stackprof's own sums of each frame, which its files have beside the stacks, are the truth.
class ImportStackprofTest < Minitest::Test
  include Imported

  RAW = { version: 1.2, mode: :wall, interval: 500, samples: 3, gc_samples: 0, missed_samples: 0, metadata: {},
          frames: { 11 => { name: "main", file: "/app/a.rb", line: 1, total_samples: 3, samples: 0 },
                    12 => { name: "Array#each", file: "<cfunc>", line: nil, total_samples: 3, samples: 2 },
                    13 => { name: "(sweeping)", file: "", total_samples: 1, samples: 1 } },
          raw: [2, 11, 12, 2, 1, 13, 1], raw_lines: [2, 7, 0, 2, 1, 0, 1], raw_timestamp_deltas: [400, 600, 500] }.freeze
  SUMS = { mode: "cpu", interval: 1000, samples: 10, frames: {
    1 => { name: "main", file: "a.rb", line: 1, total_samples: 10, samples: 1, edges: { 2 => 6, 3 => 3 }, lines: { 4 => [10, 1] } },
    2 => { name: "left", file: "a.rb", line: 5, total_samples: 6, samples: 2, edges: { 4 => 4 }, lines: { 6 => [6, 2] } },
    3 => { name: "right", file: "a.rb", line: 8, total_samples: 3, samples: 1, edges: { 4 => 2 } },
    4 => { name: "leaf", file: "a.rb", line: 10, total_samples: 6, samples: 6, lines: { 11 => [4, 4], 12 => [2, 2] } }
  } }.freeze

  def json(data) = JSON.generate(data)
  def fixture(name) = real("stackprof/#{name}")

  # [self, total] by name, of frames whose names occur once.
  def told(name)
    frames = JSON.parse(fixture(name))["frames"].values
    once = frames.map { |frame| frame["name"] }.tally.select { |_, count| count == 1 }
    frames.select { |frame| once[frame["name"]] }.to_h { |frame| [frame["name"], frame.values_at("samples", "total_samples")] }
  end

  def test_stacks_of_real_files_give_the_samples_that_stackprof_tells
    own = methods(imported(fixture("wall-raw.json")), :captures)
    told("wall-raw.json").each { |name, sums| assert_equal sums, own[name], name }
    assert_operator told("wall-raw.json").size, :>, 8
    raw = JSON.parse(fixture("wall-raw.json"))
    assert_equal raw["raw_timestamp_deltas"].sum * 1000, imported(fixture("wall-raw.json")).segments.first.stat("elapsed_ns")
  end

  def test_sums_of_real_files_keep_the_samples_of_methods
    %w[wall.json raw-only.json].each do |file|
      own = methods(imported(fixture(file)), :captures).transform_values(&:first)
      told(file).each { |name, (samples)| assert_equal samples, own[name].to_i, "#{file} #{name}" }
    end
  end

  def test_marshal_says_what_json_says
    assert_equal stacks(imported(fixture("wall.json")), :wall), stacks(imported(fixture("wall.dump")), :wall)
    assert_equal 11, imported(Marshal.dump(SUMS.merge(samples: 11))).segments.first.stat("captures") + 1
    assert_operator methods(imported(fixture("cpu-raw.dump")), :cpu)["Shop#tax"].last, :>, 0
    assert_operator methods(imported(fixture("object-raw.dump")), :objects)["Shop#names"].last, :>, 10_000
  end

  def test_rows_have_times_lines_and_kinds
    [json(RAW), Marshal.dump(RAW)].each do |bytes|
      recording = imported(bytes)
      assert_equal({ %w[main Array#each] => 1_000_000, %w[(sweeping)] => 500_000 }, stacks(recording))
      assert_equal({ %w[main Array#each] => 2, %w[(sweeping)] => 1 }, stacks(recording, :captures))
      segment = recording.segments.first
      assert_equal 500_000, segment.header.interval_ns
      assert_equal [["main", "/app/a.rb", 1, 0], ["Array#each", "", 0, 1], ["(sweeping)", "", 0, 2]], segment.frames.values.map { |frame| frame.to_a.drop(1) }
    end
  end

  def test_modes
    assert_equal({ %w[main Array#each] => 1_000_000, %w[(sweeping)] => 500_000 }, stacks(imported(json(RAW.merge(mode: "cpu"))), :cpu))
    assert_equal({ %w[main Array#each] => 1000, %w[(sweeping)] => 500 }, stacks(imported(json(RAW.merge(mode: "object"))), :objects))
    assert_equal({ %w[main Array#each] => 2, %w[(sweeping)] => 1 }, stacks(imported(json(RAW.merge(mode: "custom"))), :captures))
    without_times = json(RAW.reject { |key, _| key == :raw_timestamp_deltas })
    assert_equal({ %w[main Array#each] => 1_000_000, %w[(sweeping)] => 500_000 }, stacks(imported(without_times)))
  end

  def test_sums_are_split_in_proportion
    expected = { %w[main] => 1, %w[main left] => 2, %w[main right] => 1, %w[main left leaf] => 4, %w[main right leaf] => 2 }
    [json(SUMS), Marshal.dump(SUMS)].each do |bytes|
      assert_equal expected, stacks(imported(bytes), :captures)
      notes = imported(bytes).segments.first.header.notes
      assert_match(/call paths are estimates/, notes.join)
    end
  end

  def test_what_is_damaged_is_named
    { "the list of stacks ends within a stack" => { raw: [2, 11, 12], raw_lines: nil, raw_timestamp_deltas: nil },
      "a frame of a stack is \"99\", not one of the list" => { raw: [1, 99, 1], raw_lines: nil },
      "the depth of a stack is -1, not a count" => { raw: [-1, 11, 1], raw_lines: nil },
      "the depth of a stack is 1.0e+300, not a count" => { raw: [1e300, 11, 1], raw_lines: nil },
      "raw has 7 numbers and raw_lines 1" => { raw_lines: [1] },
      "the time of a sample is -1, not an amount" => { raw_timestamp_deltas: [-1, 2, 3] },
      "a frame's name is nil, not text" => { frames: { 11 => {}, 12 => {}, 13 => {} } },
      "frames is 3, not an object" => { frames: 3 },
      "the interval is \"x\", not a count" => { interval: "x" } }.each do |message, more|
      bytes = message.start_with?("frames") ? Marshal.dump(RAW.merge(more)) : json(RAW.merge(more))
      assert_includes refused(bytes), message
    end
  end

  def test_times_that_do_not_fit_are_told
    Tempfile.create do |file|
      file.write(json(RAW.merge(raw_timestamp_deltas: [1])))
      file.flush
      profile = Import.open(file.path)
      profile.write_to(StringIO.new)
      assert_equal ["has 3 samples and 1 times: each sample counts for the interval"], profile.warnings
    end
  end
end
