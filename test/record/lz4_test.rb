# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/lz4_encoder"
require "pitwall/errors"
require "pitwall/record/lz4"

class LZ4Test < Minitest::Test
  LZ4 = Pitwall::Record.const_get(:LZ4)

  def samples
    random = Random.new(4)
    ["", "a", "abc", "a" * 5000, "abcd" * 3000, random.bytes(3000),
     Array.new(4000) { random.rand(4).chr }.join, "x" * 17 + random.bytes(300) * 3]
  end

  def test_decodes_what_was_encoded
    samples.each { |raw| assert_equal raw.b, LZ4.decode(LZ4Encoder.encode(raw.b), raw.bytesize) }
  end

  # A block encoded by hand: literal "ab", then a copy of 10 bytes from 2 bytes back, then literal "c".
  def test_an_example_by_hand
    assert_equal "ababababababc", LZ4.decode([0x26, 97, 98, 2, 0, 0x10, 99].pack("C*"), 13)
  end

  def test_refuses_everything_else
    ["\x10", "\xf0", "\xf0\xff", "\x04a", "\x14a\x00\x00", "\x14a\x09\x00", "\x1fa\x01\x00"].each do |bad|
      assert_raises(ArgumentError, bad.inspect) { LZ4.decode(bad.b, 100) }
    end
    assert_raises(ArgumentError) { LZ4.decode(LZ4Encoder.encode("a" * 100), 99) }
    assert_raises(ArgumentError) { LZ4.decode(LZ4Encoder.encode("a" * 100), 101) }
  end

  # The decoders of the extension and of the library give the same answer for valid and for damaged blocks.
  def test_both_decoders_agree
    skip "no extension for this Ruby" unless LZ4.native?

    random = Random.new(9)
    samples.each do |raw|
      block = LZ4Encoder.encode(raw.b)
      60.times do
        ruby = answer { LZ4.decode(block, raw.bytesize) }
        native = answer { Pitwall::Native.lz4_decompress(block, raw.bytesize) }
        assert_equal ruby, native, block.inspect
        block = block.dup
        block.setbyte(random.rand(block.bytesize), random.rand(256))
      end
    end
  end

  private

  def answer
    yield
  rescue ArgumentError
    :refused
  end
end
