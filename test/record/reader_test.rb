# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require "tmpdir"

class ReaderTest < Minitest::Test
  Record = Pitwall::Record

  STACK = [["Object#main", "/app/a.rb", 1, 3], ["Shop#sum", "/app/shop.rb", 10, 12]].freeze

  def simple(**options, &block)
    RecordingBuilder.build(**options) do |segment|
      segment.thread(1, "main")
      segment.row(stack: STACK, wall: 5, cpu: 4, captures: 2)
      block&.call(segment)
    end
  end

  def test_reads_back_what_was_written
    [false, true].each do |compress|
      recording = RandomRecording.new(5, segments: 3, compress: compress)
      read = recording.read
      assert_empty read.warnings
      assert_equal [100, 101, 102], read.segments.map { |segment| segment.header.pid }
      assert_equal sums(recording.samples), read.segments.each_with_index.map { |segment, at| tally_sums(segment, at) }.reduce(:merge)
    end
  end

  def test_frames_nodes_and_threads
    segment = RandomRecording.read(simple).segments.first
    node = segment.tallies.first.node_ids.first
    assert_equal ["Shop#sum", "/app/shop.rb", 10, 0], segment.frame(node).to_a.drop(1)
    assert_equal 12, segment.lines[node]
    assert_equal "Object#main", segment.frame(segment.parents[node]).name
    assert_equal "main", segment.thread(1).name
    assert_equal 1000, segment.unit_ns
    assert_equal({ "reason" => "stop" }, segment.tail)
    assert_equal 1990, segment.stat("captures")
    assert_equal 0, segment.stat("no such counter")
  end

  def test_rows_come_in_order_and_can_be_read_again
    Dir.mktmpdir do |dir|
      path = File.join(dir, "a.pit")
      recording = RandomRecording.new(6, segments: 1, compress: true)
      File.binwrite(path, recording.bytes)
      segment = Record.read(path).segments.first
      2.times do
        rows = []
        segment.each_rows { |chunk| chunk.each { |thread, state, _, wall, cpu, captures| rows << [thread, state, wall, cpu, captures] } }
        expected = recording.samples.first(segment.row_count).map { |sample| [sample.thread, sample.state, sample.wall, sample.cpu, sample.captures] }
        assert_equal expected, rows
      end
      File.binwrite(path, "PITWALL 1\n")
      assert_match(/changed while it was read|became shorter/, assert_raises(Pitwall::BadRecording) { segment.each_rows { |_| nil } }.message)
    end
  end

  def test_collections
    bytes = simple do |segment|
      segment.collection(start: 5, span: 90, marking: 30, sweeping: 20, pauses: 3, longest: 35, longest_at: 2, majors: 1, cause: 2, major_cause: 2, allocated: 7, living: 8)
      segment.flush
      segment.collection(start: 100, marking: 1, cause: 99, major_cause: 15)
    end
    first, second = RandomRecording.read(bytes).segments.first.collections
    assert_equal [5, 90, 30, 20, 3, 35, 2, 1, 1, 1, 0, :malloc, :oldgen, 7, 8], first.to_a
    assert_equal [50, 95, true], [first.total_ns, first.end_ns, first.major?]
    assert_equal [nil, :mixed, nil, false], [second.cause, second.major_cause, second.living, second.major?]
  end

  def test_merged_collections_supersede_those_before
    bytes = simple do |segment|
      segment.collection(start: 1)
      segment.collection(start: 2)
      segment.flush
      segment.merge_collections(1)
      segment.collection(start: 1, runs: 2)
      segment.flush
      segment.collection(start: 3, runs: 2)
    end
    assert_equal [[1, 2], [3, 2]], RandomRecording.read(bytes).segments.first.collections.map { |run| [run.start_ns, run.runs] }
  end

  def test_only_the_last_open_counts
    bytes = simple do |segment|
      segment.open(stack: STACK, wall: 100)
      segment.flush
      segment.open(stack: STACK, wall: 30, cpu: 2)
    end
    tally = RandomRecording.read(bytes).segments.first.tallies.first
    assert_equal [35, 6, 2], tally.cells
  end

  def test_unknown_chunks_are_skipped
    bytes = simple { |segment| segment.chunk("WHAT", "ever") }
    assert_empty RandomRecording.read(bytes).warnings
  end

  def test_a_frame_that_was_never_named
    bytes = RecordingBuilder.build do |segment|
      segment.chunk("NODE", [1, 1].pack("w*") + [[1], [77], [0]].map { |values| RecordingBuilder.column(values) }.join)
    end
    assert_equal "(unresolved)", RandomRecording.read(bytes).segments.first.frame(1).name
  end

  def test_bytes_that_are_not_utf8_become_visible
    bytes = RecordingBuilder.build { |segment| segment.row(stack: [["m\xff".b]]) }
    assert_equal "m\\xFF", RandomRecording.read(bytes).segments.first.frame(1).name
  end

  def test_a_killed_process_is_read_to_its_last_flush
    whole = simple(stop: false) { |segment| segment.flush }
    recording = RandomRecording.read(whole)
    assert_equal ["process 4242 ended without stop; complete to the last flush"], recording.warnings.map(&:message)

    # Cut anywhere behind the header: never an error.
    head = whole.index("STRS")
    (head..whole.bytesize - 1).each do |size|
      recording = RandomRecording.read(whole.byteslice(0, size))
      assert_includes recording.warnings.map(&:code), :unstopped
      assert_equal [:truncated], recording.warnings.map(&:code) - [:unstopped], "cut at #{size}" unless boundary?(whole, size)
    end
  end

  def test_a_file_cut_in_its_header_is_refused
    whole = simple(stop: false)
    (RecordingBuilder::MAGIC.bytesize..whole.index("STRS") - 1).each do |size|
      assert_match(/ends inside its header, after #{size} bytes: nothing was recorded/, refused(whole.byteslice(0, size)))
    end
    assert_includes RandomRecording.read(whole.byteslice(0, 200), salvage: true).warnings.map(&:code), :headless
    joined = RandomRecording.read(simple + whole.byteslice(0, 200))
    assert_equal [[4242], [:truncated, :headless]], [joined.segments.map { |segment| segment.header.pid }, joined.warnings.map(&:code)]
  end

  def test_a_killed_process_in_the_middle_of_a_joined_file
    first = simple(stop: false, pid: 1)
    joined = first.byteslice(0, first.bytesize - 9) + simple(pid: 2)
    recording = RandomRecording.read(joined)
    assert_equal [1, 2], recording.segments.map { |segment| segment.header.pid }
    assert_equal [:truncated, :unstopped], recording.warnings.map(&:code)
    assert_equal [[5, 4, 2]] * 2, recording.segments.map { |segment| segment.tallies.first.cells }
  end

  def test_damage_names_the_place_and_the_mend
    bytes = simple
    at = bytes.index("SAMP")
    bytes.setbyte(at + 22, bytes.getbyte(at + 22) ^ 1)
    error = refused(bytes, advice: [:salvage])
    assert_match(/\A\S+\.pit: damaged at byte #{at}: chunk SAMP fails its checksum\z/, error)

    recording = RandomRecording.read(bytes, salvage: true)
    warning = recording.warnings.first
    assert_equal [:skipped, at], [warning.code, warning.offset]
    assert_equal bytes.index("STAT") - at, warning.bytes
    assert_equal 1990, recording.segments.first.stat("captures")
  end

  def test_salvage_goes_on_after_lost_names_and_stacks
    bytes = simple
    %w[STRS NODE FRAM HEAD].each do |type|
      damaged = bytes.dup
      at = damaged.index(type)
      damaged.setbyte(at + 21, damaged.getbyte(at + 21) ^ 0x55)
      assert_match(/chunk #{type}/, refused(damaged))
      segment = RandomRecording.read(damaged, salvage: true).segments.first
      assert_equal [5, 4, 2], segment.tallies.first.cells, type
      node = segment.tallies.first.node_ids.first
      expected = { "STRS" => "(lost name)", "NODE" => "(unresolved)", "FRAM" => "(unresolved)", "HEAD" => "Shop#sum" }
      assert_equal expected[type], segment.frame(node).name
    end
  end

  # A row without a stack is at the root before anything was lost.
  def test_salvage_counts_only_rows_whose_stack_was_lost
    bytes = RecordingBuilder.build do |segment|
      segment.row(stack: [], wall: 1)
      segment.row(stack: [["a"]], wall: 2)
      segment.row(stack: [["b"]], wall: 3)
    end
    at = bytes.index("NODE") + 21
    bytes.setbyte(at, bytes.getbyte(at) ^ 0x55)
    read = RandomRecording.read(bytes, salvage: true)
    assert_equal [0], read.segments.first.tallies.flat_map(&:node_ids)
    assert_includes read.warnings.map(&:message), "process 4242: 2 names or stacks were lost with the damaged parts"
  end

  def test_salvage_of_rubbish_in_between
    first = simple(pid: 1)
    joined = first + "rubbish" * 1000 + simple(pid: 2)
    assert_match(/damaged at byte #{first.bytesize}/, refused(joined))
    recording = RandomRecording.read(joined, salvage: true)
    assert_equal [1, 2], recording.segments.map { |segment| segment.header.pid }
    assert_equal 7000, recording.warnings.first.bytes
  end

  def test_a_newer_version_says_upgrade
    assert_match(/format version 2 and this Pitwall reads up to 1: upgrade pitwall/, refused("PITWALL 2\nHEAD"))
    assert_match(/version 2/, refused(simple + "PITWALL 2\nHEAD"))
  end

  def test_what_is_no_recording
    assert_match(/is empty/, refused(""))
    assert_match(/is not a recording/, refused("\x7fELF" + "x" * 100))
    assert_match(/ends after 4 bytes, before anything was recorded/, refused("PITW"))
    { Dir.tmpdir => "directory", "/nonexistent/a.pit" => "no such file", File.join(__FILE__, "b.pit") => "no such file" }.each do |path, message|
      error = assert_raises(Pitwall::UsageError) { Record.read(path) }
      assert_equal [2, 1], [error.status, error.message.lines.size]
      assert_includes error.message, message
    end
    assert_match(/standard input or a pipe/, refused_path("-"))
    assert_match(/standard input or a pipe/, refused_path("/dev/null"))
    assert_match(/cannot be read/, refused_path("a\0b"))
    Dir.mktmpdir do |dir|
      File.mkfifo(File.join(dir, "pipe"))
      assert_match(/a pipe/, refused_path(File.join(dir, "pipe")))
    end
  end

  def test_rules_of_the_format_are_checked
    columns = ->(*lists) { lists.map { |list| RecordingBuilder.column(list) }.join }
    samp = ->(node: [1], state: [0], wall: [1]) { [1].pack("w") + columns.([1, 1], [state[0], 1], node, wall, [1], [1, 1]) }
    {
      "names node 9 of 3" => ["SAMP", samp.(node: [9])],
      "state above 255" => ["SAMP", samp.(state: [256])],
      "too large in column wall" => ["SAMP", samp.(wall: [1 << 61])],
      "covers 2 rows of 1" => ["SAMP", [1].pack("w") + columns.([1, 2], [0, 1], [1], [1], [1], [1, 1])],
      "half a run" => ["SAMP", [1].pack("w") + columns.([1], [0, 1], [1], [1], [1], [1, 1])],
      "an empty run" => ["SAMP", [1].pack("w") + columns.([1, 1, 2, 0], [0, 1], [1], [1], [1], [1, 1])],
      "2 values in column node for 1 rows" => ["SAMP", samp.(node: [1, 1])],
      "parent is not before it" => ["NODE", [3, 1].pack("w*") + columns.([0], [1], [1])],
      "continues with node 9 where 3 is next" => ["NODE", [9, 1].pack("w*") + columns.([1], [1], [1])],
      "names string 99" => ["FRAM", [1].pack("w") + columns.([9], [0], [99], [0], [0])],
      "continues with string 50" => ["STRS", [50, 1].pack("w*") + columns.([1]) + "x"],
      "bytes of strings" => ["STRS", [5, 1].pack("w*") + columns.([9]) + "x"],
      "second HEAD" => ["HEAD", "{}"],
      "is not JSON" => ["STAT", "{"],
      "is not a JSON object" => ["STAT", "[]"],
      "continues with collection 1 where 0 is next" => ["GCEV", [0, 1, 1].pack("w*") + columns.(*[[1]] * 15)],
      "0 values in column living for 1 rows" => ["GCEV", [0, 0, 1].pack("w*") + columns.(*[[1]] * 14, [])],
      "ends inside column" => ["OPEN", "\x01\x7f"],
      "cuts a number" => ["OPEN", "\x01\x01\xff"],
      "ends inside a number" => ["OPEN", "\xff"],
      "a number that is too large" => ["OPEN", "\xff" * 12]
    }.each do |message, (type, payload)|
      bytes = RecordingBuilder.build do |segment|
        segment.row(stack: STACK)
        segment.flush
        segment.chunk(type, payload)
      end
      assert_match(/chunk #{type} .*#{Regexp.escape(message)}/, refused(bytes))
      RandomRecording.read(bytes, salvage: true)
    end
  end

  def test_sizes_are_bounded_before_anything_is_read
    large = RecordingBuilder::MAGIC + ["HEAD", 1, "\0\0\0", 10, 1 << 30, 0].pack("a4Ca3V3") + "x" * 10
    assert_match(/larger than 16777216/, refused(large))
    long = RecordingBuilder::MAGIC + ["HEAD", 0, "\0\0\0", 1 << 31, 1 << 31, 0].pack("a4Ca3V3") + "x" * 10
    assert_match(/larger than 16777216/, refused(long))
    assert_match(/stands before the segment's HEAD/, refused(RecordingBuilder::MAGIC + RecordingBuilder.chunk("STAT", "{}")))
  end

  def test_a_header_of_wrong_types_is_survived
    odd = { ruby: [], host: "x", pid: "1", program: 7, notes: "n", argv_options: [1, {}], interval_ns: -1, settings: nil, thread_states: "yes" }
    header = RandomRecording.read(RecordingBuilder.build(**odd) { |_| nil }).segments.first.header
    assert_equal [{}, {}, nil, nil, [], [], nil, {}, false],
                 [header.ruby, header.host, header.pid, header.program, header.notes, header.argv_options, header.interval_ns, header.settings, header.thread_states?]
    assert_match(/unit_ns/, refused(RecordingBuilder.build(unit_ns: 0) { |_| nil }))
    assert_match(/schema/, refused(RecordingBuilder.build(schema: "other") { |_| nil }))
  end

  private

  def refused(bytes, **more)
    Dir.mktmpdir do |dir|
      path = File.join(dir, "a.pit")
      File.binwrite(path, bytes)
      refused_path(path, **more)
    end
  end

  def refused_path(path, advice: nil)
    error = assert_raises(Pitwall::BadRecording) { Pitwall::Record.read(path) }
    assert_equal advice, error.advice.keys if advice
    assert_equal 1, error.message.lines.size
    assert_equal 5, error.status
    error.message
  end

  # Whether a chunk ends there: then nothing is cut.
  def boundary?(bytes, size)
    at = RecordingBuilder::MAGIC.bytesize
    at += 20 + bytes.byteslice(at + 8, 4).unpack1("V") while at < size
    at == size
  end

  def sums(samples)
    samples.group_by { |sample| [sample.segment, sample.thread, sample.state, sample.stack.map { |frame| [frame[0], frame[3]] }] }
           .transform_values { |same| [same.sum(&:wall), same.sum(&:cpu), same.sum(&:captures)] }
  end

  def tally_sums(segment, number)
    segment.tallies.flat_map do |tally|
      rows = []
      tally.each { |node, wall, cpu, captures| rows << [[number, tally.thread_id, tally.state, stack(segment, node)], [wall, cpu, captures]] }
      rows
    end.to_h
  end

  def stack(segment, node)
    path = []
    while node.positive?
      path.unshift([segment.frame(node).name, segment.lines[node]])
      node = segment.parents[node]
    end
    path
  end
end
