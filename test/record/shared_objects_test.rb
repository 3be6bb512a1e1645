# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require "pitwall/record/chunks"

class SharedObjectsTest < Minitest::Test
  SharedObject = Pitwall::Record::SharedObject

  def read(*rows, salvage: false, &block)
    bytes = RecordingBuilder.build(pid: 5) do |segment|
      rows.each { |path, id, from| segment.shared_object(path, id, names_from: from) }
      block&.call(segment)
    end
    RandomRecording.read(bytes, salvage: salvage)
  end

  def test_rows
    read = read(["/lib/libx.so", "B2C1", 1], ["[vdso]", "", 2], ["/lib/liby.so", "00", 9])
    assert_equal [SharedObject.new("/lib/libx.so", "b2c1", :symtab), SharedObject.new("[vdso]", "", :dynsym),
                  SharedObject.new("/lib/liby.so", "00", :other)], read.segments.first.shared_objects
    assert_empty read.warnings
    assert_empty read.segments.first.with(shared_objects: []).shared_objects
    assert_empty Pitwall::Record::Segment.empty.shared_objects
  end

  def test_an_object_with_too_many_symbols_is_told
    warning = read(["/lib/huge.so", "b2c1", 4]).warnings.first
    assert_equal :symbols, warning.code
    assert_equal "process 5: huge.so has too many symbols to be read while it is recorded: " \
                 "its functions are called by their address", warning.message
  end

  # The strings of a process that was killed may be missing.
  def test_lost_strings
    read = read { |segment| segment.chunk("OBJS", [1].pack("w") + [77, 78, 0].map { |id| RecordingBuilder.column([id]) }.join) }
    assert_equal [SharedObject.new("(lost name)", "", :none)], read.segments.first.shared_objects
  end
end
