# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require_relative "../support/toy_chunk"
require "tmpdir"

# A chunk type is one file: support/toy_chunk.rb adds one, and the reader treats it as its own.
class ChunksTest < Minitest::Test
  Record = Pitwall::Record
  Chunks = Record.const_get(:Chunks)
  Toy = Record::Toy

  # Rows of name (as a string id, or a String) and price; a list a chunk.
  def recording(*chunks, **options, &block)
    RecordingBuilder.build(**options) do |segment|
      chunks.each do |rows|
        rows = rows.map { |name, price| [name.is_a?(String) ? segment.string(name) : name, price] }
        columns = [0, 1].map { |at| RecordingBuilder.column(rows.map { |row| row[at] }) }
        segment.chunk("TOYS", [rows.size].pack("w") + columns.join)
      end
      block&.call(segment)
    end
  end

  def refused(bytes) = assert_raises(Pitwall::BadRecording) { RandomRecording.read(bytes) }.message

  def test_the_table_of_a_toy_chunk_is_on_the_segment
    [false, true].each do |compress|
      read = RandomRecording.read(recording([["bear", 7]], [["ball", 2]], compress: compress))
      assert_equal [Toy.new("bear", 7), Toy.new("ball", 2)], read.segments.first.toys
      assert_equal 9, read.segments.first.price_of_toys
      assert_empty read.warnings
    end
    assert_empty RandomRecording.read(recording).segments.first.toys
    assert_equal [Toy.new("kite", 1)], Record::Segment.empty.with(toys: [Toy.new("kite", 1)]).toys
  end

  def test_the_warning_of_a_toy_chunk_names_the_process
    warnings = RandomRecording.read(recording([["bear", 7]] * 3, pid: 5)).warnings
    assert_equal [[:toys, "process 5: all toys are taken"]], warnings.map { |warning| [warning.code, warning.message] }
  end

  def test_the_limit_of_a_toy_chunk_holds_for_all_segments_together
    bytes = recording([["bear", 7]] * 2, pid: 1) + recording([["ball", 2]] * 2, pid: 2)
    assert_match(/damaged at byte \d+: chunk TOYS goes past the limit for toys\z/, refused(bytes))
    assert_equal [2, 0], RandomRecording.read(bytes, salvage: true).segments.map { |segment| segment.toys.size }
  end

  def test_damage_of_a_toy_chunk_drops_that_chunk_whole
    good = [["bear", 7]]
    refusals = { "has a toy for nothing" => [["ball", 1], ["ball", 0]],
                 "goes past the limit for toys" => [["ball", 1]] * 4 }
    refusals.each do |message, bad|
      bytes = recording(bad, good)
      bytes = recording(good, bad) if message.include?("limit")
      assert_match(/chunk TOYS #{message}/, refused(bytes))
      read = RandomRecording.read(bytes, salvage: true)
      assert_equal [Toy.new("bear", 7)], read.segments.first.toys
      assert_match(/chunk TOYS #{message}/, read.warnings.first.message)
    end

    bytes = recording([["ball", 1]], good)
    bytes.setbyte(at = bytes.index("TOYS") + 21, bytes.getbyte(at) ^ 1)
    assert_match(/chunk TOYS fails its checksum/, refused(bytes))
    assert_equal [Toy.new("bear", 7)], RandomRecording.read(bytes, salvage: true).segments.first.toys
  end

  def test_a_lost_name_of_a_toy_is_counted
    read = RandomRecording.read(recording([[77, 7]]))
    assert_equal "(lost name)", read.segments.first.toys.first.name
    assert_includes read.warnings.map(&:message), "process 4242: 1 names or stacks were lost with the damaged parts"
  end

  def test_each_type_is_registered_once
    { "TOYS" => /has type TOYS, which .*Toys reads/, "toy" => /not four letters/ }.each do |name, message|
      chunk = Class.new(Chunks::Toys) { type name }
      assert_match(message, assert_raises(ArgumentError) { Chunks.register(chunk) }.message)
    end
  end

  # The list, the files and the document name the same types.
  def test_every_type_is_one_file_and_is_documented
    folder = File.expand_path("../../lib/pitwall/record/chunks", __dir__)
    in_files = Dir[File.join(folder, "*.rb")].to_h do |file|
      [File.basename(file), File.read(file).scan(/^ +type "([A-Z]{4})"$/).flatten]
    end
    assert_empty in_files.reject { |_, types| types.size == 1 }
    known = Chunks.by_type.keys - ["TOYS"]
    assert_equal known.sort, in_files.values.flatten.sort
    document = File.read(File.expand_path("../../doc/record-format.md", __dir__))
    assert_empty(known.reject { |type| document.include?("`#{type}`") })
  end

  def test_every_limit_is_declared_once
    names = Chunks.by_type.each_value.flat_map { |chunk| chunk.limits.keys }
    assert_equal names.uniq, names
  end

  # ALLO gives its totals and its rows together, or neither.
  def test_a_refused_chunk_leaves_nothing
    limits = Chunks.limits.merge(sites: 2, labels: 6, queries: 3, weights: 1)
    lists = %i[sites works work_steps tests query_sums calls]
    bytes = RecordingBuilder.build do |segment|
      3.times { |id| segment.site(id + 5, stack: [["a"]]) }
      4.times do |id|
        segment.work({ "n" => id.to_s }, count: 1, ns: 1)
        segment.test({ "n" => id.to_s })
        segment.queries({ "n" => id.to_s }, digest: 1)
        segment.calls(stack: [["a"], ["b#{id}"]])
      end
    end
    Chunks.stub(:limits, limits) do
      segment = RandomRecording.read(bytes, salvage: true).segments.first
      assert_equal lists.to_h { |name| [name, []] }, lists.to_h { |name| [name, segment.public_send(name).to_a] }
      assert_nil segment.allocation_totals
    end
    segment = RandomRecording.read(bytes).segments.first
    assert_equal [3, 4, 4, 4, 4, 4], lists.map { |name| segment.public_send(name).to_a.size }
  end

  # OPEN rows become tallies only once all chunks were read.
  def test_too_many_open_threads
    bytes = RecordingBuilder.build do |segment|
      segment.row(stack: [["a"]], thread: 1)
      segment.open(stack: [["a"]], thread: 2, wall: 9)
    end
    Chunks.stub(:limits, Chunks.limits.merge(threads: 1)) do
      assert_match(/the segment before byte #{bytes.bytesize} goes past the limit for threads\z/,
                   refused(bytes))
      read = RandomRecording.read(bytes, salvage: true)
      assert_equal [1], read.segments.first.tallies.map(&:thread_id)
      assert_includes read.warnings.map(&:code), :lost
    end
    assert_equal [1, 2], RandomRecording.read(bytes).segments.first.tallies.map(&:thread_id)
  end

  # The error number of a damaged file may be none that a system knows.
  def test_any_error_number_of_writing_is_put_into_words
    words = { 28 => "No space left on device: make room", 4000 => "Unknown error 4000",
              (1 << 32) - 1 => "error 4294967295" }
    words.each do |error, text|
      bytes = RecordingBuilder.build(stop: false) { |segment| segment.chunk("ROOM", [error, 0].pack("VQ<")) }
      assert_includes RandomRecording.read(bytes).warnings.first.message,
                      "could not write its recording to the end (#{text})"
    end
  end
end
