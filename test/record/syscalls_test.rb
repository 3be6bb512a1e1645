# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require_relative "../support/syscalls_recording"
require "pitwall/cli/support/command"

# The chunks SYSC and SYST, which doc/record-format.md describes.
class SyscallRecordTest < Minitest::Test
  def calls(segment) = [].tap { |found| segment.each_syscall { |call| found << call } }

  # Yields the recording while its file exists: rows of system calls are read from the file on demand.
  def read(bytes, **options)
    Tempfile.create(["calls", ".pit"]) do |file|
      file.binmode
      file.write(bytes)
      file.flush
      yield Pitwall::Record.read(file.path, **options)
    end
  end

  def test_rows_and_totals
    [false, true].each do |compress|
      read(SyscallsRecording.bytes(compress: compress)) do |recording|
        segment = recording.segments.first
        found = calls(segment)
        counts = %w[newfstatat openat close rename].map { |name| found.count { |call| call.name == name } }
        assert_equal [8, 1, 1, 1], counts
        stat, open, rename = found.values_at(0, 8, 10)
        expected = ["/app/lib0/shop.rb", nil, 2, 0, 5, 1000, 4242, 101, "/app"]
        assert_equal expected, stat.to_a.values_at(1, 3, 4, 5, 6, 7, 8, 9, 11)
        assert_equal ["Shop.load", 9], [segment.frame(stat.node).name, segment.lines[stat.node]]
        assert_equal [5, 0, 0o2000000], open.to_a.values_at(3, 4, 5)
        assert_equal ["/app/a", "/app/b\\xFF"], [rename.path, rename.path2]
        assert_equal [nil, 0, nil], [rename.flags, rename.node, rename.cwd]
        assert_equal found.map(&:name).tally, segment.syscall_totals.transform_values(&:first)
        assert segment.syscalls? && segment.syscall_rows?
        assert_empty recording.warnings
        assert_equal found, calls(segment), "and once more"
      end
    end
  end

  def test_losses_are_reported
    bytes = RecordingBuilder.build do |segment|
      segment.syscall_totals({ "close" => [1, 0, 2] }, flags: 5, lost: 3, refused: 2)
    end
    read(bytes) do |recording|
      facts = recording.segments.first.syscall_facts
      assert_equal [3, 2, :seccomp, true], facts.to_a
      assert_equal 4, recording.warnings.size
      assert_match(/process 4242: 3 system calls are in the totals only/, recording.warnings.map(&:message).join("\n"))
      refute recording.segments.first.syscall_rows?
      assert_empty calls(recording.segments.first)
    end
  end

  # Only the checks of bounds can find such damage.
  def test_rows_with_ids_out_of_range_are_refused
    row = ->(values) { [0, 1].pack("w*") + values.map { |value| RecordingBuilder.column([value]) }.join }
    bad = { "string" => [1, 99, 0, 0, 0, 0, 0, 0, 0, 0, 0], "node" => [1, 0, 0, 0, 0, 0, 0, 99, 0, 0, 0] }
    bad.each do |noun, values|
      bytes = RecordingBuilder.build { |segment| segment.chunk("SYSC", row.call(values)) }
      error = assert_raises(Pitwall::BadRecording) { read(bytes) { nil } }
      assert_match(/names #{noun} 99/, error.message)
      read(bytes, salvage: true) { |recording| assert_equal 1, calls(recording.segments.first).size }
    end
    short = RecordingBuilder.build { |segment| segment.chunk("SYSC", [0, 5].pack("w*") + RecordingBuilder.column([1])) }
    assert_raises(Pitwall::BadRecording) { read(short) { nil } }
    columns = Array.new(4) { RecordingBuilder.column((1..5000).to_a) }
    many = RecordingBuilder.build { |segment| segment.chunk("SYST", [0, 0, 0, 5000].pack("w*") + columns.join) }
    assert_raises(Pitwall::BadRecording) { read(many) { nil } }
  end
end
