# frozen_string_literal: true

require "stringio"
require_relative "../test_helper"
require_relative "../support/random_recording"

# A recording that is written anew: other rows, and all else as it was.
class RewritingTest < Minitest::Test
  Record = Pitwall::Record
  KERNEL = ["vfs_read", "[kernel]", 0, 0, 3].freeze

  def setup
    @dir = Dir.mktmpdir
    @path = File.join(@dir, "a.pit")
  end

  def teardown = FileUtils.rm_rf(@dir)

  # The recording that is written anew, with a frame below each row if one is given.
  def rewritten(bytes, frame = nil)
    File.binwrite(@path, bytes)
    out = StringIO.new("".b)
    Record.rewrite(@path, out) do |segment, writer|
      each_row(segment) do |thread, state, node, wall, cpu, captures, label|
        node = writer.node(node, writer.frame(frame[0], frame[1], frame[2], frame[4]), frame[3]) if frame
        writer.row(thread: thread, state: state, node: node, wall: wall, cpu: cpu, captures: captures, labels: label)
      end
      { "perf_joined" => 5 }
    end
    out.string
  end

  def each_row(segment, &block)
    segment.each_rows { |rows| rows.to_enum(:each).each(&block) }
    segment.open_rows.each { |row| yield(*row.first(5), 0, row.last) }
  end

  # Sums by thread, state, labels and stack.
  def sums(segment, below: nil)
    segment.tallies.each_with_object(Hash.new { |sums, key| sums[key] = [0, 0, 0] }) do |tally, sums|
      tally.each do |node, *weights|
        key = [tally.thread_id, tally.state, segment.labels(tally.label_id), stack(segment, node) + [below].compact]
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

  # Types and payloads of chunks but those of rows, and of what names and ends a recording.
  def others(bytes)
    skipped = %w[SAMP OPEN STRS FRAM NODE STAT]
    found = []
    at = 0
    while at < bytes.bytesize
      next at += 10 if bytes.byteslice(at, 8) == "PITWALL "

      type, size = bytes.unpack("@#{at}a4x4V")
      found << bytes.byteslice(at, 20 + size) unless skipped.include?(type)
      at += 20 + size
    end
    found
  end

  def test_the_same_rows_make_the_same_recording
    6.times do |seed|
      bytes = RandomRecording.new(seed, compress: seed.odd?).bytes
      found = rewritten(bytes)
      assert_equal others(bytes), others(found), seed
      before, after = [bytes, found].map { |one| RandomRecording.read(one) }
      assert_empty after.warnings
      assert_equal before.segments.map { |one| sums(one) }, after.segments.map { |one| sums(one) }, seed
      after.segments.zip(before.segments) do |new, old|
        assert_equal 5, new.stat("perf_joined")
        assert_equal old.stats, new.stats.reject { |name,| %w[perf_joined write_error].include?(name) }.slice(*old.stats.keys)
      end
    end
  end

  def test_new_frames_below_old_ones
    bytes = RandomRecording.new(3).bytes
    before, after = [bytes, rewritten(bytes, KERNEL)].map { |one| RandomRecording.read(one).segments }
    assert_equal before.map { |one| sums(one, below: KERNEL) }, after.map { |one| sums(one) }
  end

  # A process that ended inside its header is none of the reader's segments.
  def test_a_process_without_a_header_takes_no_rows_of_the_next
    bytes = RandomRecording.new(4).bytes
    headless = RecordingBuilder::MAGIC + RecordingBuilder.chunk("HEAD", "{}").byteslice(0, 9)
    second = bytes.index(RecordingBuilder::MAGIC, 1)
    [0, second, bytes.bytesize].each do |at|
      found = RandomRecording.read(rewritten(bytes.byteslice(0, at) + headless + bytes.byteslice(at..), KERNEL)).segments
      assert_equal RandomRecording.read(bytes).segments.map { |one| sums(one, below: KERNEL) }, found.map { |one| sums(one) }
    end
  end

  # The process was killed while it wrote.
  def test_a_recording_that_was_cut_off_keeps_what_is_whole
    bytes = RandomRecording.new(5, segments: 1, rows: 200).bytes
    whole = 0
    (60..bytes.bytesize).step(193) do |size|
      cut = bytes.byteslice(0, size)
      before = begin
        RandomRecording.read(cut).segments
      rescue Pitwall::BadRecording
        next
      end
      after = RandomRecording.read(rewritten(cut)).segments
      assert_equal before.map { |one| sums(one) }, after.map { |one| sums(one) }, size
      assert_equal before.map(&:tail), after.map(&:tail)
      whole += 1
    end
    assert_operator whole, :>, 5
  end

  # One line, or a recording.
  def test_damage_is_refused_or_read
    random = Random.new(20_261_124)
    originals = [RandomRecording.new(6, rows: 25).bytes, RandomRecording.new(7, rows: 25, compress: true).bytes]
    outcomes = Hash.new(0)
    250.times { |round| outcomes[outcome(damaged(originals.sample(random: random), random), round)] += 1 }
    assert_operator outcomes[:refused], :>, 20, outcomes
    assert_operator outcomes[:read], :>, 20, outcomes
  end

  def damaged(bytes, random)
    bytes = bytes.dup
    return bytes.byteslice(0, random.rand(bytes.bytesize)) if random.rand(4).zero?

    heads = bytes.enum_for(:scan, /[A-Z]{4}[\x00\x01]\x00\x00\x00/n).map { Regexp.last_match.begin(0) }
    at = heads.sample(random: random)
    size = bytes.unpack1("@#{at + 8}V")
    return bytes if size.zero?

    random.rand(1..3).times { bytes.setbyte(at + 20 + random.rand(size), random.rand(256)) }
    bytes[at + 16, 4] = [Zlib.crc32(bytes.byteslice(at + 20, size))].pack("V") unless random.rand(9).zero?
    bytes
  end

  def outcome(bytes, round)
    RandomRecording.read(rewritten(bytes, KERNEL))
    :read
  rescue Pitwall::BadRecording => error
    assert_equal 1, error.message.lines.size, round
    :refused
  end
end
