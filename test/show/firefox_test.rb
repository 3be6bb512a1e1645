# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require_relative "../support/shop_recording"
require_relative "../oracle/samples"
require "pitwall/analyse"
require "pitwall/show"

# The data of the export to the Firefox profiler. test/browser opens the export in the profiler.
class FirefoxExportTest < Minitest::Test
  include Pitwall

  def profile(bytes, weight = :wall, selection: Analyse::Selection.all)
    Dir.mktmpdir do |dir|
      path = File.join(dir, "a.pit")
      File.binwrite(path, bytes)
      out = +""
      Show::Export::Firefox.new(Record.read(path).segments, weight, selection: selection).write(out)
      JSON.parse(out)
    end
  end

  # [[names from the root, category of the leaf, ns since the profile's start, weight], …]
  def samples(profile, thread)
    strings = profile["shared"]["stringArray"]
    stacks, frames, functions = thread.values_at("stackTable", "frameTable", "funcTable")
    time = 0.0
    thread["samples"]["stack"].zip(thread["samples"]["timeDeltas"],
                                   thread["samples"]["weight"]).map do |stack, delta, weight|
      time += delta
      leaf = stack
      names = []
      while stack
        frame = stacks["frame"][stack]
        names << strings[functions["name"][frames["func"][frame]]]
        stack = stacks["prefix"][stack]
      end
      [names.reverse, leaf && profile["meta"]["categories"][frames["category"][stacks["frame"][leaf]]]["name"],
       (time * 1e6).round, weight]
    end
  end

  def columns_agree(table)
    sizes = table.except("length", "weightType").values.map(&:size).uniq
    assert_includes [[table["length"]], []], sizes
  end

  # The profiler identifies threads of a process by this number. One native thread may run several Ruby threads in turn.
  def test_threads_of_one_native_thread
    bytes = RecordingBuilder.build do |segment|
      [[1, 7], [2, 0], [3, 8], [4, 0], [5, 8]].each do |id, native_id|
        segment.thread(id, "t", native_id: native_id)
        segment.row(stack: [["A#a", "/a.rb", 1, 1]], thread: id)
      end
    end
    assert_equal [7, "0-2", "8-3", "0-4", "8-5"], profile(bytes)["threads"].map { |thread| thread["tid"] }
  end

  def test_every_thread_in_time_order
    recording = RandomRecording.new(41)
    profile = profile(recording.bytes)
    profile["threads"].each do |thread|
      %w[samples markers stackTable frameTable funcTable resourceTable nativeSymbols].each do |name|
        columns_agree(thread[name])
      end
      expected = recording.samples.select do |sample|
        (sample.segment + 100).to_s == thread["pid"] && thread_id(sample.thread) == thread["name"]
      end
      unit = [1, 1000][thread["pid"].to_i - 100]
      time = 0
      assert_equal(expected.map { |sample| [sample.stack.map(&:first),
                                            time.tap { time += sample.wall * unit }] } + [[[], time]],
                                            samples(profile, thread).map { |names, _, at,| [names, at] })
      assert_equal [nil, *expected.map { |sample| sample.cpu * unit }], thread["samples"]["threadCPUDelta"]
      assert_in_delta expected.sum { |sample| sample.wall * unit } / 1e6, thread["samples"]["weight"].sum, 0.001
    end
    assert_equal 6, profile["threads"].size
  end

  def test_categories_and_states
    profile = profile(ShopRecording.bytes)
    main, worker = profile["threads"]
    assert_equal ["main", true, "4242"], main.values_at("name", "isMainThread", "pid")
    leaves = samples(profile, main).to_h { |names, category,| [names.last, category] }
    assert_equal %w[Ruby C GC Idle], leaves.values_at("Shop::Fib.fib", "BigDecimal#+", "(marking)", "IO#read")
    assert_equal [["Kernel#sleep", "Idle"], ["Shop::Fib.fib", "GVL wait"]],
                 samples(profile, worker).first(2).map { |names, category,| [names.last, category] }
    markers = worker["markers"]
    assert_equal %w[blocked gvl blocked], markers["name"].map { |name| profile["shared"]["stringArray"][name] }
    assert_equal [[0.0, 1400.0], [1400.0, 1460.0], [1460.0, 1473.0]], markers["startTime"].zip(markers["endTime"])
    types = profile["meta"]["markerSchema"].map { |schema| schema["name"] }
    assert(markers["data"].all? { |data| types.include?(data["type"]) })
    assert_includes profile["meta"]["extra"].first["entries"].map { |entry| entry["value"] }.join("\n"), "dropped 1"
  end

  def test_labels_and_requests_are_markers
    bytes = RecordingBuilder.build do |segment|
      segment.thread 1, "main"
      [[{ "route" => "x" }, 5], [{ "route" => "x" }, 6], [{}, 7]].each do |labels, wall|
        segment.row stack: [["a", "/a.rb", 1, 2]], wall: wall * 1000, cpu: 1000, labels: labels
      end
      segment.mark({ "route" => "x" }, end_ns: 11_000_000, ns: 10_500_000)
    end
    profile = profile(bytes)
    markers = profile["threads"].first["markers"]
    names = markers["name"].map { |name| profile["shared"]["stringArray"][name] }
    rows = names.zip(markers["startTime"], markers["endTime"], markers["data"].map { |data| data["labels"] })
    assert_equal [["running", 0.0, 18.0, nil], ["labels", 0.0, 11.0, "route=x"], ["request", 0.5, 11.0, "route=x"]],
                 rows
    selected = profile(bytes, selection: Analyse::Selection.new(labels: { "route" => "x" }))
    assert_equal [5.0, 6.0, 0.0], samples(selected, selected["threads"].first).map(&:last)
  end

  def test_collections_and_weights
    profile = profile(RandomRecording.new(42).bytes)
    gc = profile["threads"].flat_map { |thread| thread["markers"]["data"].select { |data| data["type"] == "gc" } }
    assert_equal 10, gc.size
    assert_equal "newobj", gc[1]["reason"]
    assert_equal "samples", profile(ShopRecording.bytes, :captures)["threads"].first["samples"]["weightType"]
  end

  def test_a_selection_leaves_gaps
    profile = profile(ShopRecording.bytes, selection: Analyse::Selection.new(state: 1))
    assert_equal [[["Worker#run", "Shop::Fib.fib"], "GVL wait", 1_400_000_000, 60.0], [[], nil, 1_460_000_000, 0.0]],
                 samples(profile, profile["threads"].first)
    assert_equal 1, profile["threads"].size
  end

  private

  def thread_id(id) = id < 3 ? "t#{id}" : "thread #{id}"
end
