# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/otlp_reader"
require_relative "../support/random_recording"
require_relative "../support/traced_recording"
require "pitwall/analyse"
require "pitwall/show"

# The export to OTLP profiles, read by protoc.
class OtlpExportTest < Minitest::Test
  include Pitwall
  include OtlpReader

  SELECTION = Analyse::Selection

  def export(segments, weight = nil, selection: SELECTION.all)
    out = StringIO.new
    Show::Export::Otlp.new(segments, weight, selection: selection).write(out)
    out.string
  end

  def built(**head, &block) = RandomRecording.read(RecordingBuilder.build(**head, &block)).segments

  def samples(data, type) = data[:resources].flat_map { |resource|
 resource[:profiles] }.select { |profile| profile[:type].first == type }.flat_map { |profile| profile[:samples] }

  def sums(samples) = samples.each_with_object(Hash.new(0)) { |sample, all| all[yield(sample)] += sample[:value] }

  def test_every_sample_with_its_weights_and_attributes
    recording = RandomRecording.new(31)
    data = otlp(export(recording.read.segments))
    assert_equal [100, 101], data[:resources].map { |resource| resource[:attributes]["process.pid"] }
    { "wall" => :wall, "cpu" => :cpu, "samples" => :captures }.each do |type, weight|
      expected = Hash.new(0)
      recording.samples.each do |sample|
        stack = sample.stack.map { |name, path, first, line| [name, path, first, line.to_i] }
        expected[[sample.segment, sample.thread, Analyse::States.name(sample.state),
stack]] += sample[weight] * (weight == :captures ? 1 : [1, 1000][sample.segment % 2])
      end
      got = data[:resources].each_with_index.map do |resource, number|
        sums(samples({ resources: [resource] },
type)) { |sample| [number, sample[:attributes]["thread.id"], sample[:attributes]["pitwall.state"],
  sample[:stack].map { |frame|
 frame.values_at(:name, :file, :start, :line) }] }
      end
      assert_equal expected.reject { |_, sum| sum.zero? }, got.reduce(:merge), type
    end
  end

  def test_objects_by_class
    segments = RandomRecording.new(32).read.segments
    data = otlp(export(segments))
    tree = Analyse::CallTreeBuilder.build(segments, weights: %i[objects bytes gc])
    { "alloc_objects" => :objects, "alloc_space" => :bytes, "gc" => :gc }.each do |type, weight|
      sums = tree.methods.map(&:name).zip(tree.self_by_method(weight)).each_with_object(Hash.new(0)) { |(name, own),
        all|
 all[name] += own }
      assert_equal sums.reject { |_, own| own.zero? }, sums(samples(data, type)) { |sample| sample[:stack].last[:name] }
    end
    assert_equal segments.flat_map(&:sites).reject(&:special).map(&:class_name).uniq.sort, samples(data,
      "alloc_objects").filter_map { |sample|
 sample[:attributes]["pitwall.class"] }.uniq.sort
  end

  def test_what_is_said_of_the_process_and_its_profiles
    segments = built(commit: "ab" * 20, notes: ["no states here"]) { |segment|
 segment.row(stack: [["a", "/a.rb", 1, 2]], wall: 3, cpu: 2) }
    resource = otlp(export(segments, :cpu))[:resources].first
    assert_equal({ "service.name" => "shop.rb", "process.pid" => 4242, "process.parent_pid" => 4241,
      "process.runtime.name" => "ruby", "process.runtime.version" => "3.4.1",
                   "process.runtime.description" => "ruby 3.4.1 (2024-12-25) +PRISM [x86_64-linux]",
                     "vcs.ref.head.revision" => "ab" * 20 }, resource[:attributes])
    assert_equal ["pitwall", VERSION], resource[:scope]
    assert_equal ["https://opentelemetry.io/schemas/1.44.0"] * 2, resource[:schema]
    # The weight that was asked for comes first.
    assert_equal [%w[cpu nanoseconds], %w[samples count], %w[wall nanoseconds]], (resource[:profiles].map { |profile|
 profile[:type] })
    resource[:profiles].each do |profile|
      assert_equal [1_790_000_000_000_000_000, 2_000_000_000, %w[wall nanoseconds], 1_000_000],
profile.values_at(:time, :duration, :period_type, :period)
      assert_equal ["made by pitwall #{VERSION}", "ruby 3.4.1 (2024-12-25) +PRISM [x86_64-linux]", "no states here"],
profile[:comments]
    end
    assert_equal [3000], (samples({ resources: [resource] }, "wall").map { |sample| sample[:value] })
  end

  def test_labels_are_attributes_and_spans_are_links
    trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    cases = { { "trace_id" => trace, "span_id" => span, "route" => "orders#show" } => [{ "route" => "orders#show" },
      [trace, span]],
              { "trace_id" => trace } => [{ "trace_id" => trace }, nil],
              { "trace_id" => trace.upcase,
"span_id" => span } => [{ "trace_id" => trace.upcase, "span_id" => span }, nil],
              { "trace_id" => "0" * 32, "span_id" => span } => [{ "trace_id" => "0" * 32, "span_id" => span }, nil],
              { "trace_id" => trace, "span_id" => "17" } => [{ "trace_id" => trace, "span_id" => "17" }, nil],
              { "thread.name" => "mine", "state" => "odd", "" => "x",
"y" => "" } => [{ "thread.name_label" => "mine", "state_label" => "odd" }, nil] }
    segments = built { |segment| cases.each_key { |labels|
 segment.row(stack: [["a", "/a.rb", 1, 2]], labels: labels) } }
    found = samples(otlp(export(segments)), "wall").map { |sample|
 [sample[:attributes].except("thread.name", "thread.id", "pitwall.state"), sample[:link]] }
    assert_equal cases.values, found
  end

  def test_frames_have_types_and_native_ones_mappings_with_build_ids
    stack = [["<main>", "/a.rb", 1, 7], ["Array#each", "", 0, 0, 1], ["rb_ary_each", "/lib/libruby.so.3.1", 0, 0, 3],
      ["libz.so.1+0x1f40", "/lib/libz.so.1", 0, 0, 3],
             ["do_syscall_64", "[kernel.kallsyms]", 0, 0, 3], ["(marking)", "", 0, 0, 2]]
    segments = built do |segment|
      segment.row(stack: stack)
      segment.shared_object("/lib/libruby.so.3.1", "b2c1")
      segment.shared_object("/lib/libz.so.1", "aa01")
      segment.shared_object("/lib/libz.so.1", "aa02")
    end
    frames = samples(otlp(export(segments)), "wall").first[:stack]
    assert_equal ["ruby", "ruby", "native", "native", "kernel", "ruby"], (frames.map { |frame| frame[:type] })
    assert_equal [nil, nil, "/lib/libruby.so.3.1", "/lib/libz.so.1", "[kernel.kallsyms]", nil], (frames.map { |frame|
 frame[:mapping] })
    # An object that was replaced has no one build id.
    assert_equal [nil, nil, "b2c1", nil, nil, nil], (frames.map { |frame| frame[:build_id] })
    # Without a name there is an address for those who have the symbols.
    assert_equal [nil, 0x1f40], frames[3].values_at(:name, :address)
    assert_equal ["rb_ary_each", nil, ""], frames[2].values_at(:name, :address, :file)
  end

  def test_traces
    segments = RandomRecording.read(TracedRecording.bytes).segments
    data = otlp(export(segments))
    tree = Analyse::CallTreeBuilder.build(segments, weights: %i[calls wall wait cpu objects])
    { "calls" => :calls, "wall" => :wall, "wait" => :wait, "cpu" => :cpu,
"alloc_objects" => :objects }.each { |type, weight| assert_equal tree.total(weight), samples(data, type).sum { |sample|
 sample[:value] } }
    assert_equal %w[calls count], data[:resources].first[:profiles].find { |profile|
 profile[:type].first == "calls" }[:period_type]
  end

  def test_a_selection_and_equal_files
    segments = RandomRecording.new(33).read.segments
    data = otlp(export(segments, selection: SELECTION.new(process: 101, state: 1)))
    assert_equal([101], data[:resources].map { |resource| resource[:attributes]["process.pid"] })
    assert_equal ["gvl"], samples(data, "wall").map { |sample| sample[:attributes]["pitwall.state"] }.uniq
    assert_equal export(segments), export(segments)
  end

  # Two processes and two parts of a thread's time have the same stacks.
  def test_stacks_of_several_segments_are_there_once
    builder = RecordingBuilder.new
    [1, 2].each { |pid| builder.segment(pid: pid) { |segment|
 segment.row(stack: [["a", "/a.rb", 1, 2], ["b", "/b.rb", 1, 2]]) } }
    bytes = export(RandomRecording.read(builder.bytes).segments)
    assert_equal 2, decoded(bytes)["dictionary"].sum { |part| part["stack_table"].size }
    otlp(bytes)
  end

  def test_many_stacks_go_out_in_batches
    segments = built { |segment| 5000.times { |number| segment.row(stack: [["a", "/a.rb", 1, 1 + number]]) } }
    data = otlp(export(segments))
    assert_equal (1..5000).to_a, samples(data, "samples").map { |sample| sample[:stack].first[:line] }.sort
  end
end
