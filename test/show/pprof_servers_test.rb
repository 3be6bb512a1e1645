# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/pprof_reader"
require_relative "../support/random_recording"
require_relative "../support/shop_recording"
require_relative "../support/traced_recording"
require "pitwall/analyse"
require "pitwall/show"

# The rules of Pyroscope and Parca for profiles. A server refuses a profile that breaks any rule.
# Sources: Pyroscope's pkg/validation and pkg/og/convert/pprof, Parca's pkg/normalizer.
class PprofServersTest < Minitest::Test
  include PprofReader
  include Pitwall

  # Labels of a program with invalid names and values.
  def labelled
    RecordingBuilder.build do |segment|
      segment.thread 1, "main"
      [{ "" => "x" }, { "route" => "" }, { "http.route" => "/x", "my label" => "ü" },
       { "route" => "a#b", "thread" => "mine", "pid" => "1" }].each_with_index do |labels, at|
        segment.row stack: [["a", "/a.rb", 1, 2]], wall: at + 1, labels: labels
      end
    end
  end

  def objects(older: false)
    RecordingBuilder.build(mode: "none", collectors: ["allocations"]) do |segment|
      segment.site(5, stack: [["Shop#sum", "/app/shop.rb", 3, 4]],
                   counters: [7, 0, 4, 0, 0, 0, 280, 700, 3, 5, *(older ? [] : [300])])
    end
  end

  def recordings
    { "samples" => ShopRecording.bytes, "all" => RandomRecording.new(7).bytes, "trace" => TracedRecording.bytes,
      "labels" => labelled, "objects" => objects }
  end

  def test_what_both_check_before_they_take_it
    recordings.each do |name, bytes|
      profile = profile(RandomRecording.read(bytes).segments)
      refute_empty profile[:types], name
      refute_empty profile[:samples], name
      assert_equal profile[:strings].uniq, profile[:strings], name
      [*profile[:types], profile[:period_type]].each do |words|
        words.each { |word| assert_match(/\A[a-z_]+\z/, word, name) }
      end
      # One of the servers takes a time in 1970 for microseconds.
      assert_operator profile[:time], :>, 86_400_000_000_000 * 365, name
      assert_operator profile[:duration], :>, 0, name
      assert_operator profile[:period], :>=, 1, name
      profile[:samples].each do |sample|
        refute_includes sample[:labels], "", name
        refute_includes sample[:labels].values, "", name
        assert_operator sample[:labels].size, :<=, 100, name
        assert_operator sample[:values].values.min, :>=, 0, name
        refute_empty sample[:stack], name
      end
    end
  end

  # Pyroscope names a profile after the first sample type that it knows.
  def test_the_types_are_those_they_know
    units = { "samples" => "count", "cpu" => "nanoseconds", "wall" => "nanoseconds", "wait" => "nanoseconds",
              "calls" => "count", "gc" => "nanoseconds",
              "alloc_objects" => "count", "alloc_space" => "bytes", "inuse_objects" => "count",
              "inuse_space" => "bytes" }
    types = recordings.transform_values { |bytes| profile(RandomRecording.read(bytes).segments)[:types] }
    types.each_value { |found| assert_empty found - units.to_a }
    assert_equal %w[samples cpu wall], types["samples"].map(&:first)
    assert_equal %w[alloc_objects alloc_space inuse_objects inuse_space gc], types["objects"].map(&:first)
    assert_equal [%w[space bytes], 1], profile(RandomRecording.read(objects).segments).values_at(:period_type, :period)
  end

  def test_retained_bytes_or_why_not
    sums = lambda do |bytes|
      found = profile(RandomRecording.read(bytes).segments)
      [found[:types].map(&:first) & %w[inuse_objects inuse_space],
       found[:samples].sum { |sample| sample[:values]["inuse_space"].to_i }, found[:comments].grep(/inuse/)]
    end
    assert_equal [%w[inuse_objects inuse_space], 300, []], sums.call(objects)
    types, bytes, comments = sums.call(objects(older: true))
    assert_equal [["inuse_objects"], 0], [types, bytes]
    assert_match(/\Ano inuse_space: the recording was made before/, comments.first)
    bursts = RecordingBuilder.build do |segment|
      segment.thread 1, "main"
      segment.row stack: [["a", "/a.rb", 1, 2]], wall: 1
      segment.site(5, counters: [7, *[0] * 9])
      segment.allocation_totals(allocated: 70, flags: 4)
    end
    assert_match(/\Ano inuse_objects and inuse_space: objects were looked at in bursts; pitwall allocations -- CMD/,
                 sums.call(bursts).last.first)
  end

  def test_labels_that_would_have_it_refused_are_left_out
    labels = profile(RandomRecording.read(labelled).segments)[:samples].map do |sample|
      sample[:labels].except("thread_id", "state")
    end
    assert_equal [{ "thread" => "main" }, { "thread" => "main" },
                  { "thread" => "main", "http.route" => "/x", "my label" => "ü" },
                  { "thread" => "main", "route" => "a#b", "thread_label" => "mine",
                    "pid_label" => "1" }], labels.map { |one| one.reject { |name,| name == "pid" } }
  end
end
