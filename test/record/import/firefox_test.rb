# frozen_string_literal: true

require_relative "../../test_helper"
require_relative "../../support/imported"

class ImportFirefoxTest < Minitest::Test
  include Imported

  STRINGS = ["main", "a.rb", "sum", "each", "<cfunc>"].freeze
  TABLES = { "stackTable" => { "frame" => [0, 1, 2], "prefix" => [nil, 0, 1], "length" => 3 },
             "frameTable" => { "func" => [0, 1, 2], "line" => [4, 6, nil], "category" => [0, 0, 1], "address" => [-1, -1, -1], "length" => 3 },
             "funcTable" => { "name" => [0, 2, 3], "fileName" => [1, 1, 4], "lineNumber" => [1, 5, nil], "length" => 3 } }.freeze
  CATEGORIES = [{ "name" => "Other" }, { "name" => "Idle" }, { "name" => "Stalled" }].freeze
  SAMPLES = { "stack" => [2, 0, nil, 1], "time" => [10, 12, 15, 16], "length" => 4 }.freeze

  def thread(samples = SAMPLES, **more) = { "name" => "t", "pid" => 7, "tid" => 8, "samples" => samples, "stringArray" => STRINGS }.merge(TABLES, more.transform_keys(&:to_s))
  def file(*threads, meta: {}, **more) = JSON.generate({ "meta" => { "interval" => 2, "categories" => CATEGORIES }.merge(meta), "threads" => threads }.merge(more.transform_keys(&:to_s)))
  def fixture(name) = real("vernier/#{name}")

  def test_samples_last_until_the_next
    recording = imported(file(thread))
    ms = 1_000_000
    assert_equal({ %w[main sum each] => 2 * ms, %w[main] => 3 * ms, ["(no stack)"] => 1 * ms, %w[main sum] => 2 * ms }, stacks(recording))
    assert_equal({ %w[main sum each] => 1, %w[main] => 1, %w[main sum] => 1 }, stacks(recording, :captures))
    segment = recording.segments.first
    assert_equal [7, 8, "t"], [segment.header.pid, *segment.threads.values.map { |one| [one.id, one.name] }.first]
    assert_equal [["main", "a.rb", 1, 0], ["sum", "a.rb", 5, 0], ["each", "", 0, 1]], segment.frames.values.map { |frame| frame.to_a.drop(1) }.sort_by(&:first).values_at(1, 2, 0)
  end

  def test_deltas_weights_and_cpu_times
    base = { "stack" => [1, 0], "timeDeltas" => [10, 2.5] }
    assert_equal({ %w[main sum] => 2_500_000, %w[main] => 2_000_000 }, stacks(imported(file(thread(base)))))
    assert_equal({ %w[main sum] => 3, %w[main] => 4 }, stacks(imported(file(thread(base.merge("weight" => [3, 4], "weightType" => "samples")))), :captures))
    assert_equal({ %w[main sum] => 1_500_001, %w[main] => 4 }, stacks(imported(file(thread(base.merge("weight" => [1.500001, 0.000004], "weightType" => "tracing-ms"))))))
    assert_equal({ %w[main sum] => 30, %w[main] => 40 }, stacks(imported(file(thread(base.merge("weight" => [30, 40], "weightType" => "bytes")))), :bytes))
    cpu = base.merge("threadCPUDelta" => [nil, 9])
    assert_equal({ %w[main sum] => 9000 }, stacks(imported(file(thread(cpu), meta: { "sampleUnits" => { "threadCPUDelta" => "µs" } })), :cpu))
    assert_equal({}, stacks(imported(file(thread(cpu), meta: { "sampleUnits" => { "threadCPUDelta" => "variable CPU cycles" } })), :cpu))
  end

  def test_the_browsers_own_tables_of_rows_and_its_processes
    gecko = { "name" => "GeckoMain", "pid" => 5, "tid" => 5, "stringTable" => ["run (https://a.example/x.js:12:3)", "0x7f001", "(root)"],
              "samples" => { "schema" => { "stack" => 0, "time" => 1 }, "data" => [[1, 3.0], [0, 4.0]] },
              "stackTable" => { "schema" => { "prefix" => 0, "frame" => 1 }, "data" => [[nil, 0], [0, 1]] },
              "frameTable" => { "schema" => { "location" => 0, "line" => 4 }, "data" => [[2], [0, false, 0, nil, 14]] } }
    child = { "meta" => { "interval" => 1 }, "threads" => [gecko.merge("pid" => 6)] }
    recording = imported(JSON.generate({ "meta" => { "interval" => 1 }, "threads" => [gecko], "processes" => [child] }))
    assert_equal [5, 6], recording.segments.map { |segment| segment.header.pid }
    assert_equal({ ["(root)", "run"] => 2_000_000, ["(root)"] => 2_000_000 }, stacks(recording))
    assert_includes recording.segments.first.frames.values.map(&:path), "https://a.example/x.js"
  end

  def test_shared_tables_of_newer_versions
    shared = TABLES.merge("stringArray" => STRINGS)
    bare = { "name" => "t", "pid" => "7", "tid" => "7-1", "samples" => SAMPLES }
    assert_equal 2_000_000, stacks(imported(file(bare, shared: shared)))[%w[main sum]]
  end

  def test_states_by_category
    tallies = imported(file(thread({ "stack" => [2, 0], "time" => [0, 1] }))).segments.first.tallies
    assert_equal [2, 3], tallies.map(&:state).sort
  end

  def test_vernier
    told = JSON.parse(fixture("threads.json"))
    recording = imported(fixture("threads.json"))
    assert_equal told["threads"].sum { |one| one["samples"]["weight"].sum }, recording.segments.first.stat("captures")
    assert_equal told["threads"].map { |one| one["name"] }.sort, recording.segments.first.threads.values.map(&:name).sort
    assert_operator methods(recording, :captures)["Shop#tax"].last, :>, 10
    objects = JSON.parse(Zlib.gunzip(fixture("objects.json.gz")))["threads"].sum { |one| one["jsAllocations"]["length"] }
    assert_equal objects, stacks(imported(fixture("objects.json.gz")), :objects).values.sum
    retained = JSON.parse(fixture("retained.json"))["threads"].sum { |one| one["samples"]["weight"].sum }
    assert_equal retained, stacks(imported(fixture("retained.json")), :bytes).values.sum
    assert_equal retained, imported(fixture("retained.json")).segments.first.sites.sum(&:retained_bytes)
  end

  def test_what_is_damaged_is_named
    { "a stack is 3, not a number below 3" => thread(SAMPLES.merge("stack" => [3, 0, 1, 1])),
      "a stack is -2" => thread(SAMPLES.merge("stack" => [-2, 0, 1, 1])),
      "a stack continues itself" => thread(SAMPLES, stackTable: { "frame" => [0, 1, 2], "prefix" => [2, 0, 1] }),
      "a frame of a stack is 9" => thread(SAMPLES, stackTable: { "frame" => [0, 1, 9], "prefix" => [nil, 0, 1] }),
      "samples has 4 stacks and 1 times" => thread(SAMPLES.merge("time" => [1])),
      "4 samples and 1 weights" => thread(SAMPLES.merge("weight" => [1], "weightType" => "samples")),
      "a sample is earlier than the one before" => thread(SAMPLES.merge("time" => [4, 3, 2, 1])),
      "a weight is -1" => thread(SAMPLES.merge("weight" => [-1, 1, 1, 1], "weightType" => "samples")),
      "the time of a sample is 1.0e+250" => thread(SAMPLES.merge("time" => [1e250, 2, 3, 4])),
      "has the unit \"days\"" => thread(SAMPLES.merge("weight" => [1, 1, 1, 1], "weightType" => "days")),
      "samples is a list" => nil }.each do |message, one|
      one ? assert_includes(refused(file(one)), message) : assert_match(/samples is a Array, not an object/, refused(file(thread([]))))
    end
  end
end
