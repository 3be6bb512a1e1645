# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/pprof_reader"
require_relative "../support/random_recording"
require_relative "../support/shop_recording"
require_relative "../support/traced_recording"
require_relative "../oracle/samples"
require "pitwall/analyse"
require "pitwall/show"
require "stringio"

# The export to pprof, parsed by an independent decoder of protobuf's wire format.
class PprofExportTest < Minitest::Test
  include Pitwall
  include PprofReader

  def sums(samples, type)
    sums = samples.each_with_object(Hash.new(0)) { |sample, all| all[yield(sample)] += sample[:values][type] }
    sums.reject { |_, sum| sum.zero? }
  end

  def test_every_sample_with_its_weights_and_labels
    recording = RandomRecording.new(31)
    profile = profile(recording.read.segments)
    units = [1, 1000]
    { "wall" => :wall, "cpu" => :cpu, "samples" => :captures }.each do |type, weight|
      expected = Hash.new(0)
      recording.samples.each do |sample|
        stack = sample.stack.map { |name, path, first, line| [name, path, first, line.to_i.zero? ? first : line] }
        expected[[100 + sample.segment, sample.thread, Analyse::States.name(sample.state),
                  stack]] += sample[weight] * (weight == :captures ? 1 : units[sample.segment % 2])
      end
      timed = profile[:samples].select { |sample| sample[:labels].key?("state") }
      assert_equal expected.reject { |_, sum| sum.zero? },
                   sums(timed, type) { |sample| [sample[:labels]["pid"], sample[:labels]["thread_id"],
                                                 sample[:labels]["state"], sample[:stack]] }
    end
    assert_equal %w[samples cpu wall alloc_objects alloc_space inuse_objects inuse_space gc],
                 profile[:types].map(&:first)
    assert_equal "wall", profile[:default]
  end

  def test_objects_by_class_as_the_tree_has_them
    segments = RandomRecording.new(32).read.segments
    profile = profile(segments)
    tree = Analyse::CallTreeBuilder.build(segments, weights: %i[objects bytes gc])
    { "alloc_objects" => :objects, "alloc_space" => :bytes, "gc" => :gc }.each do |type, weight|
      assert_equal tree.total(weight), profile[:samples].sum { |sample| sample[:values][type] }
      sums = tree.methods.zip(tree.self_by_method(weight))
      sums = sums.to_h { |method, own| [[method.name, method.path, method.line], own] }
      assert_equal sums.reject { |_, own| own.zero? },
                   sums(profile[:samples], type) { |sample| sample[:stack].last.first(3) }
    end
    classes = segments.flat_map(&:sites).reject(&:special).map(&:class_name).uniq
    assert_empty classes - profile[:samples].map { |sample| sample[:labels]["class"] }
    { "inuse_objects" => :retained, "inuse_space" => :retained_bytes }.each do |type, counter|
      assert_equal segments.flat_map(&:sites).select(&:program?).sum(&counter),
                   profile[:samples].sum { |sample| sample[:values][type] }
    end
  end

  def test_a_trace_has_calls
    segments = RandomRecording.read(TracedRecording.bytes).segments
    profile = profile(segments)
    calls = segments.flat_map { |segment| segment.calls.to_a }
    assert_equal calls.sum(&:calls), profile[:samples].sum { |sample| sample[:values]["calls"] }
    tree = Analyse::CallTreeBuilder.build(segments, weights: %i[wall cpu objects])
    { "wall" => :wall, "cpu" => :cpu, "alloc_objects" => :objects }.each do |type, weight|
      assert_equal tree.total(weight), profile[:samples].sum { |sample| sample[:values][type] }
    end
    assert_equal [%w[calls count], 1], profile.values_at(:period_type, :period)
    assert_empty profile[:types].map(&:first) & %w[samples inuse_objects]
  end

  def test_native_frames_have_mappings_with_build_ids
    bytes = RecordingBuilder.build do |segment|
      segment.thread 1, "main"
      segment.row stack: [["<main>", "/a.rb", 1, 7], ["rb_ary_each", "/lib/libruby.so.3.1", 0, 0, 3],
                          ["libz.so.1+0x1f40", "/lib/libz.so.1", 0, 0, 3],
                          ["do_syscall_64", "[kernel.kallsyms]", 0, 0, 3], ["(compiled code)", "", 0, 0, 3]]
      segment.shared_object("/lib/libruby.so.3.1", "b2c1")
      segment.shared_object("/lib/libz.so.1", "aa01")
      segment.shared_object("/lib/libz.so.1", "aa02")
    end
    objects = profile(RandomRecording.read(bytes).segments)[:objects]
    program = objects.fetch("<main>")
    assert_equal ["", 0], program.last(2)
    assert_equal program, objects.fetch("(compiled code)")
    assert_equal ["/lib/libruby.so.3.1", "b2c1", 0], objects.fetch("rb_ary_each")
    # An object that was replaced has no one build id.
    assert_equal ["/lib/libz.so.1", "", 0x1f40], objects.fetch("libz.so.1+0x1f40")
    assert_equal ["[kernel.kallsyms]", "", 0], objects.fetch("do_syscall_64")
  end

  def test_when_and_how_it_was_recorded
    segments = RandomRecording.read(ShopRecording.bytes).segments
    profile = profile(segments, :cpu)
    head = RecordingBuilder::HEAD
    assert_equal [head["started_at_ns"], 2_000_000_000, %w[wall nanoseconds], head["interval_ns"], "cpu"],
                 profile.values_at(:time, :duration, :period_type, :period, :default)
    assert_includes profile[:comments], head["ruby"]["description"]
    assert_includes profile[:samples].map { |sample| sample[:stack].last }, ["(marking)", "", 0, 0]
    assert_includes profile[:samples].map { |sample| sample[:labels]["thread"] }, "puma srv tp 001"
  end

  def test_what_the_program_labelled
    bytes = RecordingBuilder.build do |segment|
      segment.thread 1, "main"
      segment.row stack: [["a", "/a.rb", 1, 2]], wall: 5, labels: { "route" => "orders#show", "state" => "mine" }
      segment.row stack: [["a", "/a.rb", 1, 2]], wall: 7
    end
    segments = RandomRecording.read(bytes).segments
    rows = profile(segments)[:samples].map do |sample|
      [sample[:values]["wall"], *sample[:labels].values_at("route", "state_label", "state")]
    end
    assert_equal [[5000, "orders#show", "mine", "running"], [7000, nil, nil, "running"]],
                 rows.sort_by(&:first)
    selection = Analyse::Selection.new(labels: { "route" => "orders#show" })
    assert_equal [5000], profile(segments, selection: selection)[:samples].map { |sample| sample[:values]["wall"] }
  end

  def test_a_selection
    segments = RandomRecording.read(ShopRecording.bytes).segments
    waiting = profile(segments, selection: Analyse::Selection.new(state: 1))
    assert_equal [60_000_000], waiting[:samples].map { |sample| sample[:values]["wall"] }
    named = profile(segments, selection: Analyse::Selection.new(thread: "puma srv tp 001"))
    assert_equal 1_473_000_000, named[:samples].sum { |sample| sample[:values]["wall"] }
  end

  def test_the_same_recording_is_the_same_file
    files = Array.new(2) do
      StringIO.new.tap { |out| Show::Export::Pprof.new(RandomRecording.read(ShopRecording.bytes).segments,
                                                       selection: Analyse::Selection.all).write(out) }.string
    end
    assert_equal(*files)
  end
end
