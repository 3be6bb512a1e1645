# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require "pitwall/analyse"

# A recording with native frames, folded, equals a recording of the same stacks without native frames.
class NativeFramesTest < Minitest::Test
  Analyse = Pitwall::Analyse
  NATIVE = %w[vm_exec_core rb_ary_each rb_yield gc_start].map { |name| [name, "/usr/lib/libruby.so", 0, 0, 3] }.freeze

  # Samples of a random recording, with native frames put between their frames.
  class Interleaved
    def initialize(seed)
      @random = Random.new(seed)
      @samples = RandomRecording.new(seed, rows: 40).samples
      @samples << RandomRecording::Sample.new(0, 1, 0, [], 3, 1, 1) # only native frames, once there are any
      @native = @samples.map { |sample| interleave(sample.stack) }
    end

    # The recording with native frames, or the one without.
    def segments(native:)
      builder = RecordingBuilder.new
      2.times do |number|
        builder.segment(pid: 100 + number) do |writer|
          @samples.zip(@native) do |sample, stack|
            next unless sample.segment == number

            writer.row(**sample.to_h.except(:segment), stack: native ? stack : folded(sample.stack))
          end
          writer.open(thread: 1, state: 2, stack: native ? @native[0] : @samples[0].stack, wall: 7, cpu: 1)
          writer.queries(place: native ? @native[1].last : @samples[1].stack.last) if native
        end
      end
      # The file must stay: rows are read from it later.
      @files ||= []
      @files << Tempfile.new(["native", ".pit"], binmode: true).tap { |file| file.write(builder.bytes) }.tap(&:flush)
      Pitwall::Record.read(@files.last.path).segments
    end

    private

    def folded(stack) = stack.empty? ? [["(native code)", "", 0, 0, 4]] : stack

    def interleave(stack)
      runs = Array.new(stack.size + 1) { Array.new(@random.rand(4)) { NATIVE.sample(random: @random) } }
      runs[0] = NATIVE if stack.empty?
      runs[0] + stack.zip(runs.drop(1)).flat_map { |frame, run| [frame, *run] }
    end
  end

  # [[method, line], …] from the root → weights, thread and state.
  def stacks(segments)
    segments.each_with_index.with_object(Hash.new(0)) do |(segment, number), sums|
      segment.tallies.each do |tally|
        tally.each do |node, *weights|
          path = []
          while node.positive?
            path.unshift([segment.frame(node).to_a.drop(1), segment.lines[node]])
            node = segment.parents[node]
          end
          3.times { |at| sums[[number, tally.thread_id, tally.state, path, at]] += weights[at] }
        end
      end
    end.reject { |_, sum| sum.zero? }
  end

  def rows(segments)
    segments.map do |segment|
      found = []
      segment.each_rows { |rows| rows.each { |_, _, node, wall, cpu,|
 found << [segment.frame(node)&.name, wall, cpu] } }
      found
    end
  end

  SEEDS = 40

  def test_folded_recordings_equal_recordings_without_native_frames
    SEEDS.times do |seed|
      recording = Interleaved.new(seed)
      native, without = recording.segments(native: true), recording.segments(native: false)
      folded = Analyse::NativeFrames.fold(native)
      assert_equal stacks(without), stacks(folded), seed
      assert_equal rows(without), rows(folded), seed
      used = folded.map { |segment| segment.with(frames: segment.frames.slice(*segment.node_frames.drop(1))) }
      refute Analyse::NativeFrames.any?(used)
      assert_equal outline(without), outline(folded), seed
    end
  end

  # Each node of a folded segment differs from its siblings, as in a recording.
  def test_no_two_siblings_are_alike
    SEEDS.times do |seed|
      Analyse::NativeFrames.fold(Interleaved.new(seed).segments(native: true)).each do |segment|
        keys = segment.parents.zip(segment.node_frames, segment.lines).drop(1)
        assert_equal keys.uniq, keys
        keys.each_with_index { |key, at| assert_operator key.first, :<=, at }
      end
    end
  end

  def test_recordings_without_native_frames_are_left_as_they_are
    segments = RandomRecording.new(1).read.segments
    Analyse::NativeFrames.fold(segments).zip(segments) { |folded, segment| assert_same segment, folded }
  end

  # perf's recording of a C program.
  def test_wholly_native_recordings_keep_their_frames
    bytes = RecordingBuilder.build { |segment| segment.row(stack: NATIVE) }
    segments = RandomRecording.read(bytes).segments
    assert_same segments.first, Analyse::NativeFrames.fold(segments).first
    assert Analyse::NativeFrames.any?(segments)
  end

  # A node of a deep tree, and many of them.
  def test_a_large_recording
    bytes = RecordingBuilder.build do |segment|
      300.times do |at|
        stack = Array.new(400) { |depth|
 depth.odd? ? NATIVE[depth % 4] : ["M#m#{(at + depth) % 500}", "/app/a.rb", 1, at] }
        segment.row(stack: stack, wall: 1, cpu: 0)
      end
    end
    folded = Analyse::NativeFrames.fold(RandomRecording.read(bytes).segments).first
    assert_equal 300 * 200, folded.parents.size - 1
    assert_equal 300, folded.tallies.sum(&:size)
  end

  private

  def outline(segments)
    Analyse::Report.new(segments, Analyse::Report::Query.new(threshold: 0)).top_down.rows.map do |row|
      [row.depth, row.method.to_a, row.own, row.total]
    end.sort_by(&:inspect)
  end
end
