# frozen_string_literal: true

require "stringio"
require_relative "../test_helper"
require "pitwall/launch/perf_stream"

# The stream that perf reads: all of perf's records, and one that clears the memory map behind each exec.
class PerfStreamTest < Minitest::Test
  PerfStream = Pitwall::Launch::PerfStream
  HEAD = "PERFILE2#{[16].pack("Q<")}".b
  EXEC = 1 << 13
  EVERYWHERE = (1 << 52) - (1 << 16)

  def record(type, misc, body) = [type, misc, 8 + body.bytesize].pack("L<S<S<") + body

  # pid, tid, name and its filling, trailer.
  def comm(pid, name, misc: EXEC, trailer: "")
    padded = "#{name}\0".b.ljust((name.bytesize + 8) / 8 * 8, "\0")
    record(3, misc, [pid, pid + 1].pack("L<2") + padded + trailer)
  end

  # What is to follow the exec of a process.
  def cleared(pid, trailer: "")
    record(1, 2, [pid, pid + 1, 0, EVERYWHERE, 0].pack("L<2Q<3") + "[heap]\0\0".b + trailer)
  end

  def copied(bytes)
    out = StringIO.new("".b)
    PerfStream.copy(StringIO.new(bytes), out)
    out.string
  end

  def test_a_record_follows_each_exec
    other = record(9, 1, "x" * 40)
    exec = comm(7, "ruby", trailer: "time and tid")
    fork = comm(7, "worker", misc: 0)
    assert_equal HEAD + other + fork + exec + cleared(7, trailer: "time and tid") + other,
                 copied(HEAD + other + fork + exec + other)
  end

  # The filling of names: the trailer begins at a multiple of 8.
  def test_names_of_each_length
    (0..20).each do |length|
      exec = comm(7, "x" * length, trailer: "t" * 24)
      assert_equal HEAD + exec + cleared(7, trailer: "t" * 24), copied(HEAD + exec), length
    end
  end

  # Records lie across the blocks in which the file is read.
  def test_random_records_of_more_than_a_block
    random = Random.new(1)
    expected = HEAD.dup
    bytes = HEAD.dup
    while bytes.bytesize < 3 << 20
      trailer = random.bytes(random.rand(3) * 8)
      pid = random.rand(1 << 31)
      if random.rand(9).zero?
        bytes << (exec = comm(pid, "n" * random.rand(16), trailer: trailer))
        expected << exec << cleared(pid, trailer: trailer)
      else
        bytes << (other = record(random.rand(4..80), random.rand(1 << 16), random.bytes(random.rand(8000))))
        expected << other
      end
    end
    assert_equal expected, copied(bytes)
  end

  def test_a_record_that_was_cut_off_ends_the_stream
    whole = HEAD + record(9, 1, "x" * 40)
    last = comm(7, "ruby")
    (0...last.bytesize).each { |bytes| assert_equal whole, copied(whole + last.byteslice(0, bytes)), bytes }
    [0, 5, 16].each { |bytes| assert_equal HEAD.byteslice(0, bytes), copied(HEAD.byteslice(0, bytes)) }
  end

  # Endless zeros are records of 0 bytes.
  class Zeros
    attr_reader :reads

    def initialize(head) = (@head, @reads = head, 0)

    def read(size)
      @reads += 1
      @reads == 1 ? @head : "\0".b * size
    end
  end

  def test_a_size_that_no_record_has_ends_the_stream
    good = record(9, 1, "x" * 40)
    8.times do |size|
      assert_equal HEAD + good, copied(HEAD + good + [9, 1, size].pack("L<S<S<") + good), size
    end
    zeros = Zeros.new(HEAD)
    PerfStream.copy(zeros, StringIO.new)
    assert_equal 2, zeros.reads
  end

  # Of an exec whose record has no room for a name, or with which the other would be too large.
  def test_an_exec_that_is_damaged_is_copied_alone
    [0, 4, 8].each { |bytes| assert_equal HEAD + (short = record(3, EXEC, "\1" * bytes)), copied(HEAD + short), bytes }
    endless = record(3, EXEC, "\1" * 100)
    long = record(3, EXEC, ("\1" * 8) + ("\0" * 65_512))
    assert_equal HEAD + endless + long, copied(HEAD + endless + long)
  end

  def test_random_damage
    random = Random.new(20_261_124)
    good = HEAD + Array.new(40) { |pid| comm(pid, "ruby#{pid}", trailer: "t" * 16) + record(9, 1, "x" * pid) }.join
    700.times do |round|
      bad = good.dup
      random.rand(1..5).times { bad.setbyte(random.rand(bad.bytesize), random.rand(256)) }
      bad = bad.byteslice(0, random.rand(bad.bytesize)) if random.rand(3).zero?
      found = copied(bad)
      assert_operator found.bytesize, :<=, bad.bytesize * 8, round
      assert_equal bad.byteslice(0, 16), found.byteslice(0, 16), round
    end
  end
end
