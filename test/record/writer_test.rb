# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require "pitwall/record/writer"

# The writer in Ruby against the reader, and against the tests' own writer of the format.
class RecordWriterTest < Minitest::Test
  Record = Pitwall::Record
  Writer = Record.const_get(:Writer)
  Malformed = Record.const_get(:Malformed)
  STACK = [["Object#main", "/app/a.rb", 1, 3, 0], ["Shop#sum", "/app/shop.rb", 10, 12, 0]].freeze

  def written
    out = StringIO.new("".b)
    writer = Writer.new(out)
    yield writer
    writer.close
    out.string
  end

  def read(bytes = nil, &block) = RandomRecording.read(bytes || written(&block))

  def one(**head)
    read do |writer|
      segment = writer.segment({ "pid" => 7 }.merge(head.transform_keys(&:to_s)))
      yield segment
    end.segments.first
  end

  # Sums by thread, state, labels and stack.
  def sums(segment)
    segment.tallies.each_with_object(Hash.new { |sums, key| sums[key] = [0, 0, 0] }) do |tally, sums|
      tally.each do |node, *weights|
        key = [tally.thread_id, tally.state, segment.labels(tally.label_id), stack(segment, node)]
        sums[key] = sums[key].zip(weights).map(&:sum)
      end
    end
  end

  def stack(segment, node)
    frames = []
    until node.zero?
      frame = segment.frame(node)
      frames.unshift([frame.name, frame.path, frame.first_line, segment.lines[node], frame.kind])
      node = segment.parents[node]
    end
    frames
  end

  def random_row(random)
    stack = Array.new(random.rand(0..6)) do
      number = random.rand(4)
      ["M#{number}", ["/app/m.rb", ""].sample(random: random), number, random.rand(3), random.rand(5)]
    end
    { thread: random.rand(1..3), state: random.rand(4), wall: random.rand(1000), cpu: random.rand(1 << 40),
      captures: random.rand(3), labels: random.rand(3).zero? ? { "route" => "r#{random.rand(4)}" } : {}, stack: stack }
  end

  def test_random_rows_are_read_as_those_of_the_independent_writer
    20.times do |seed|
      random = Random.new(seed)
      rows = Array.new(200) { random_row(random) }
      ours = one(unit_ns: 1000) do |segment|
        rows.each do |row|
          node = segment.stack(row[:stack])
          segment.row(**row.slice(:thread, :state, :wall, :cpu, :captures), node: node, labels: segment.label_set(row[:labels]))
          segment.flush if random.rand(50).zero?
        end
      end
      theirs = RandomRecording.read(RecordingBuilder.build { |segment| rows.each { |row| segment.row(**row) } }).segments.first
      assert_equal sums(theirs), sums(ours), "seed #{seed}"
      assert_equal rows.size, ours.row_count
      assert_equal rows.sum { |row| row[:captures] }, ours.stat("captures")
      assert_equal rows.sum { |row| row[:cpu] } * 1000, ours.stat("process_cpu_ns")
    end
  end

  def test_the_rows_of_a_thread_keep_their_order
    bytes = written do |writer|
      segment = writer.segment({})
      nodes = [segment.stack(STACK), segment.stack(STACK.first(1))]
      70_000.times { |at| segment.row(thread: 1, node: nodes[at % 2], wall: at) }
    end
    Tempfile.create("rows") do |file|
      file.binmode
      file.write(bytes)
      file.flush
      rows = []
      Record.read(file.path).segments.first.each_rows { |chunk| rows.concat(chunk.wall) }
      assert_equal((0...70_000).to_a, rows)
    end
  end

  def test_segments_that_are_open_at_the_same_time_do_not_mix
    recording = read do |writer|
      segments = [1, 2, 3].map { |pid| writer.segment("pid" => pid, "program" => "p#{pid}") }
      1000.times do |at|
        segment = segments[at % 3]
        segment.row(thread: 1, node: segment.stack([["m#{at % 3}", "", 0, at, 1]]), wall: 1)
        segment.flush if at % 100 == 7
      end
      segments[1].close({ "elapsed_ns" => 5 })
    end
    assert_equal [1, 2, 3], recording.segments.map { |segment| segment.header.pid }
    assert_equal [334, 333, 333], recording.segments.map { |segment| sums(segment).values.sum(&:first) }
    assert_equal %w[m0 m1 m2], recording.segments.map { |segment| segment.frame(1).name }
    assert_equal 5, recording.segments[1].stat("elapsed_ns")
    assert_empty recording.warnings
  end

  def test_threads_sites_calls_collections
    segment = one do |writer|
      node = writer.stack(STACK)
      writer.thread(1, "main", native_id: 4, start_ns: 9)
      writer.thread(2, "first name")
      writer.thread(2, "worker")
      writer.site(node: node, class_name: "Cart", type: 1, count: 3, bytes: 120, retained: 1)
      writer.site(node: 0, count: 2)
      writer.call(thread: 1, node: node, calls: 4, wall: 50, cpu: 40, wait: 3)
      writer.trace("cpu" => true)
      writer.collection(start_ns: 5, marking_ns: 7, sweeping_ns: 1, majors: 1)
      writer.flush
      writer.collection(start_ns: 50, marking_ns: 1)
    end
    assert_equal %w[main worker], segment.threads.values.map(&:name)
    assert_equal [4, 9], segment.threads[1].to_a[1, 2]
    assert_equal [[5, "Cart", 3, 120, 1], [6, "", 2, 0, 0]],
                 (segment.sites.map { |site| [site.id, site.class_name, site.count, site.bytes, site.retained] })
    assert_equal [5, 5, 0, 0], segment.allocation_totals.to_a
    assert_equal [[1, segment.calls.first.node_id, 4, 50, 3, 40, 0, 0, 0]], segment.calls.map(&:to_a)
    assert_equal({ "cpu" => true }, segment.tracing)
    assert_equal([[5, 8, 8, 1], [50, 1, 1, 0]],
                 segment.collections.map { |run| [run.start_ns, run.span_ns, run.longest_ns, run.majors] })
    assert_equal({ "reason" => "stop" }, segment.tail)
  end

  def test_names_of_any_bytes
    segment = one { |writer| writer.row(thread: 1, node: writer.stack([["m\xFF", "é", 0, 0, 0], ["x" * 100_000, "", 0, 0, 0]]), wall: 1) }
    assert_equal ["m\\xFF", "x" * 65_536], stack(segment, segment.tallies.first.node_ids.first).map(&:first)
  end

  def test_figures_that_no_recording_holds_are_refused
    [-1, 1 << 60, 0.5, Float::NAN].each do |figure|
      error = assert_raises(Malformed, figure) do
        one { |writer| [1, figure].each { |wall| writer.row(thread: 1, node: 0, wall: wall) } }
      end
      assert_match(/\Ahas a figure of #{Regexp.escape(figure.to_s)}: /, error.message)
    end
    assert_raises(ArgumentError) { one { |writer| writer.row(thread: 1, node: 3) } }
  end

  def test_the_limits_of_the_reader_are_the_writers
    error = assert_raises(Malformed) do
      one { |writer| 1_000_001.times { |id| writer.thread(id, "") } }
    end
    assert_equal "goes past the limit for threads", error.message
    error = assert_raises(Malformed) { read { |writer| 10_001.times { writer.segment({}).close } } }
    assert_equal "has more than 10000 processes", error.message
  end
end
