# frozen_string_literal: true

require_relative "../../test_helper"
require_relative "../../support/imported"
require_relative "../../support/random_tree"
require_relative "../../support/traced_recording"
require "pitwall/show"

# What Pitwall exports and imports again has the same weights.
class ImportRoundTripTest < Minitest::Test
  include Imported

  Export = Pitwall::Show::Export
  Selection = Pitwall::Analyse::Selection

  def exported(recording, format, weight)
    out = StringIO.new("".b)
    kind = Export[format]
    if kind.folds?
      query = Pitwall::Analyse::Report::Query.new(weight: weight, selection: Selection.all)
      kind.new(Pitwall::Analyse::Report.new(recording.segments, query)).write(out)
    else
      kind.new(recording.segments, weight, selection: Selection.all).write(out)
    end
    out.string
  end

  # Yields random recordings while their files are there: time lines read them again.
  def each_random(count)
    count.times do |seed|
      Tempfile.create(["random", ".pit"]) do |file|
        file.binmode
        file.write(RandomRecording.new(seed).bytes)
        file.flush
        yield Pitwall::Record.read(file.path), "seed #{seed}"
      end
    end
  end

  # Processes and threads with the sums of each.
  def threads(recording, weight)
    recording.segments.each_with_object(Hash.new(0)) do |segment, sums|
      segment.tallies.each do |tally|
        tally.each { |_, wall, cpu, captures| sums[[segment.header.pid, segment.thread(tally.thread_id).title]] += { wall: wall * segment.unit_ns, cpu: cpu * segment.unit_ns, captures: captures }[weight] }
      end
    end.reject { |_, sum| sum.zero? }
  end

  # What each format keeps: weights, and the words by which an import takes each of them alone. A format that is not
  # listed keeps wall time.
  ALL = %i[wall cpu captures objects bytes gc].freeze
  KEPT = { "pprof" => ALL, "otlp" => ALL, "collapsed" => { wall: "wall", cpu: "cpu", captures: "samples", objects: "objects", bytes: "bytes" },
           "speedscope" => %i[wall cpu captures] }.freeze
  # Formats that keep all weights at once, with threads and processes.
  WHOLE = %w[pprof otlp].freeze
  FORMATS = (Export.names & Import.names).freeze

  # The recording that comes back, of one weight or of all.
  def back(recording, format, weight)
    type = KEPT[format][weight] if KEPT[format].is_a?(Hash)
    imported(exported(recording, format, weight), **(type ? { type: type } : {}))
  end

  # The weight under which a format's import has it: speedscope has times of one kind only.
  def imported_as(format, weight) = format == "speedscope" && weight != :captures ? :wall : weight

  # Callgrind has no stacks: functions keep their own weight.
  def weighed(format, recording, weight) = format == "callgrind" ? methods(recording, weight).transform_values(&:first).reject { |_, own| own.zero? } : stacks(recording, weight)

  def assert_kept(format, recording, context, weights = KEPT.fetch(format, [:wall]).then { |kept| kept.is_a?(Hash) ? kept.keys : kept })
    whole = imported(exported(recording, format, :wall)) if WHOLE.include?(format)
    weights.each do |weight|
      expected = weighed(format, recording, weight)
      next if expected.empty? # such an export is refused

      assert_equal expected, weighed(format, whole || back(recording, format, weight), imported_as(format, weight)), "#{format}, #{context}, #{weight}"
      assert_equal threads(recording, weight), threads(whole, weight), "threads, #{format}, #{context}, #{weight}" if whole && %i[wall cpu captures].include?(weight)
    end
  end

  def read(bytes)
    Tempfile.create(["tree", ".pit"]) do |file|
      file.binmode
      file.write(bytes)
      file.flush
      yield Pitwall::Record.read(file.path)
    end
  end

  def test_random_recordings_keep_their_weights
    FORMATS.each { |format| each_random(5) { |recording, seed| assert_kept(format, recording, seed) } }
  end

  # Frames of gems, native code and collections, lost stacks, open rows, threads that begin later.
  def test_random_trees_keep_their_weights
    Dir.mktmpdir do |folder|
      15.times do |seed|
        segments = RandomTree.new(seed).segments(folder)
        FORMATS.each { |format| assert_kept(format, Struct.new(:segments).new(segments), "tree #{seed}", %i[wall cpu captures] & KEPT.fetch(format, [:wall]).to_a.flatten) }
      end
    end
  end

  def test_labels_states_and_spans_come_back
    sets = [{}, { "route" => "a" }, { "route" => "b", "trace_id" => "0af7651916cd43dd8448eb211c80319c", "span_id" => "b7ad6b7169203331" }, { "trace_id" => "x" }]
    bytes = RecordingBuilder.build do |segment|
      segment.thread(1, "main")
      sets.each_with_index { |labels, at| 4.times { |state| segment.row(stack: [["a", "/a.rb", 1, at]], state: state, labels: labels, wall: at + 10 * state + 1) } }
    end
    read(bytes) do |recording|
      sums = ->(segments) { segments.flat_map { |segment| segment.tallies.flat_map { |tally| [[tally.state, segment.labels(tally.label_id), tally.cells.each_slice(3).sum(&:first) * segment.unit_ns]] } }.sort_by(&:to_s) }
      WHOLE.each { |format| assert_equal sums.(recording.segments), sums.(imported(exported(recording, format, :wall)).segments), format }
    end
  end

  def test_exact_calls_come_back
    read(TracedRecording.bytes) do |recording|
      WHOLE.each do |format|
        back = imported(exported(recording, format, :wall))
        %i[calls wall wait cpu objects bytes].each { |weight| assert_equal stacks(recording, weight), stacks(back, weight), "#{format} #{weight}" }
        assert back.segments.first.traced?
      end
    end
  end

  # Paths, lines and kinds as well, of native frames with and without names.
  def test_otlp_keeps_frames
    stack = [["<main>", "/a.rb", 1, 7], ["Array#each", "", 0, 0, 1], ["rb_ary_each", "/lib/libruby.so.3.1", 0, 0, 3], ["libz.so.1+0x1f40", "/lib/libz.so.1", 0, 0, 3],
             ["do_syscall_64", "[kernel.kallsyms]", 0, 0, 3], ["block in Shop#sum", "/b.rb", 3, 0], ["(marking)", "", 0, 0, 2]]
    bytes = RecordingBuilder.build do |segment|
      segment.row(stack: stack)
      segment.shared_object("/lib/libz.so.1", "aa01")
    end
    read(bytes) do |recording|
      back = imported(exported(recording, "otlp", :wall)).segments.first
      frames = back.node_frames.drop(1).zip(back.lines.drop(1)).map { |id, line| back.frames[id].then { |frame| [frame.name, frame.path, frame.first_line, line, frame.kind] } }
      assert_equal stack.map { |frame| frame.size == 4 ? [*frame, 0] : frame }, frames
      assert_equal [["/lib/libz.so.1", "aa01"]], back.shared_objects.map { |object| [object.path, object.build_id] }
    end
  end

  # Time without a stack is a gap of the exported time line. Imported, it counts for "(no stack)".
  def test_firefox_keeps_a_weight_and_threads
    each_random(10) do |recording, seed|
      %i[wall cpu captures].each do |weight|
        back = imported(exported(recording, "firefox", weight))
        # A sample's weight is what was asked for; CPU times are always there.
        read = weight == :cpu ? :cpu : weight
        expected, found = [stacks(recording, weight), stacks(back, read)].map { |sums| sums.reject { |path, _| path == ["(no stack)"] } }
        assert_equal expected, found, "#{seed} #{weight}"
      end
    end
  end

  # Self weights of methods are exact. Call paths are estimates, as the format has none.
  def test_callgrind_keeps_self_weights
    each_random(3) do |recording, seed|
      { wall: "Wall_ns", cpu: "CPU_ns", captures: "Captures", objects: "Objects", bytes: "Bytes" }.each do |weight, event|
        text = exported(recording, "callgrind", weight)
        assert_equal self_weights(recording, weight), self_weights(imported(text, type: event), weight), "#{seed} #{weight}"
      end
    end
  end

  def test_callgrind_keeps_calls_of_a_trace
    Tempfile.create do |file|
      file.binmode
      file.write(TracedRecording.bytes)
      file.flush
      recording = Pitwall::Record.read(file.path)
      %i[calls wall wait].each do |weight|
        back = imported(exported(recording, "callgrind", weight))
        assert_equal self_weights(recording, weight), self_weights(back, weight), weight
        assert back.segments.first.traced?, weight
      end
    end
  end

  private

  # Name → self weight. Where methods share a name, Pitwall's export adds the line.
  def self_weights(recording, weight)
    tree = Pitwall::Analyse::CallTreeBuilder.build(recording.segments, weights: [weight])
    tree.selfs(weight).each_with_index.with_object(Hash.new(0)) do |(own, node), sums|
      sums[tree.methods[tree.node_methods[node]].name.sub(/:\d+\z/, "")] += own if own.positive?
    end
  end
end
