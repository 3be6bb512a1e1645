# frozen_string_literal: true

require_relative "../../test_helper"
require "set"
require "pitwall/record/import"
require "pitwall/record/import/marshal_reader"

# Marshal itself is the oracle: what it writes of plain data is read back as it was, and nothing else is.
class MarshalReaderTest < Minitest::Test
  Reader = Pitwall::Record::Import.const_get(:MarshalReader)
  Malformed = Pitwall::Record.const_get(:Malformed)

  Pair = Struct.new(:a, :b)
  class Trap
    def self._load(*) = raise("loaded")
    def marshal_dump = 1
    def marshal_load(*) = raise("loaded")
  end

  class Dumped
    def self._load(*) = raise("loaded")
    def _dump(_level) = "x"
  end

  class Text < String; end

  def read(bytes) = Reader.new(bytes.b).read
  def refused(value)
    bytes = value.is_a?(String) ? value : Marshal.dump(value)
    assert_raises(Malformed, bytes.inspect) { read(bytes) }.message
  end

  # Symbols come back as strings.
  def plain(value)
    case value
    when Hash then value.to_h { |key, one| [plain(key), plain(one)] }
    when Array then value.map { |one| plain(one) }
    when Symbol then value.to_s
    else value
    end
  end

  def random(random, depth = 0)
    case random.rand(depth > 4 ? 8 : 10)
    when 0 then nil
    when 1 then random.rand(2).zero?
    when 2 then random.rand(600) - 300
    when 3 then random.rand(2**62) - 2**61
    when 4 then (random.rand(2**80) - 2**79) * random.rand(2**40)
    when 5 then [random.rand, -random.rand * 1e200, 0.0, 1e-320, Float::INFINITY][random.rand(5)]
    when 6 then %w[text ünïcode name samples][random.rand(4)]
    when 7 then %i[name samples größe][random.rand(3)]
    when 8 then Array.new(random.rand(5)) { random(random, depth + 1) }
    else Array.new(random.rand(5)) { [%i[a b name][random.rand(3)], random(random, depth + 1)] }.to_h
    end
  end

  def test_what_marshal_writes_is_read
    300.times do |seed|
      value = random(Random.new(seed))
      assert_equal [plain(value)], [read(Marshal.dump(value))], "seed #{seed}"
    end
  end

  def test_links_encodings_and_defaults
    shared = ["a"]
    assert_equal [["a"], ["a"], 1.5, 1.5], read(Marshal.dump([shared, shared, 1.5, 1.5]))
    assert_equal({ "a" => 1 }, read(Marshal.dump(Hash.new(7).merge(a: 1))))
    assert_equal "größe", read(Marshal.dump("größe".encode("ISO-8859-1")))
    assert_equal "größe", read(Marshal.dump("größe".encode("UTF-16LE")))
    assert_equal "a?", read(Marshal.dump("a\xFF".b))
    assert_equal %w[a a b], read(Marshal.dump(%i[a a b]))
    assert read(Marshal.dump(Float::NAN)).nan?
  end

  def test_nothing_but_plain_data_is_built
    { Trap.new => "MarshalReaderTest::Trap", Dumped.new => "MarshalReaderTest::Dumped", Object.new => "an object (Object)",
      Pair.new(1, 2) => "a struct (MarshalReaderTest::Pair)", Text.new("x") => "MarshalReaderTest::Text", String => "a class (String)",
      Kernel => "a module (Kernel)", /x/ => "a regular expression", (1..2) => "an object (Range)", Set.new([1]) => "(Set)" }.each do |value, what|
      assert_includes refused({ a: [value] }), what
    end
    assert_includes refused(Marshal.dump("y".dup.extend(Enumerable))), "an extended object (Enumerable)"
  end

  def test_sizes_that_lie
    [+"\x04\x08[\x04\xFF\xFF\xFF\x7F", +"\x04\x08\"\x04\xFF\xFF\xFF\x7Fab", +"\x04\x08{\x03\xFF\xFF\xFF", +"\x04\x08", +"\x04\x08l+\x7F\x01"].each do |bytes|
      assert_match(/cut off|damaged/, refused(bytes.b))
    end
    assert_match(/an integer has 200 bytes/, refused(Marshal.dump(2**1600 - 1)[0..-1]))
    assert_match(/a size is -/, refused("\x04\x08[\xFA".b))
    assert_match(/names object 5 of 1/, refused("\x04\x08[\x06@\x0A".b))
    assert_match(/names symbol 0 of 0/, refused("\x04\x08;\x00".b))
    assert_match(/no type "\?"/, refused("\x04\x08?".b))
    assert_match(/is not in the format/, refused("\x04\x09i\x00".b))
    assert_match(/nested deeper than 100/, refused("\x04\x08#{"[\x06" * 10_000}0".b))
    assert_match(/an object/, refused("\x04\x08#{"o" * 10_000}".b))
    assert_match(/a key of a hash is a Array/, refused({ [1] => 2 }))
  end

  def test_every_cut_and_change_is_read_or_refused
    whole = Marshal.dump({ mode: :wall, frames: { 12 => { name: "größe", lines: { 3 => [1, 2] } } }, raw: [1.5, nil, true, 2**70] })
    whole.bytesize.times { |size| assert_raises(Malformed) { read(whole.byteslice(0, size)) } }
    random = Random.new(1)
    3000.times do
      bytes = whole.dup
      (1 + random.rand(3)).times { bytes.setbyte(2 + random.rand(bytes.bytesize - 2), random.rand(256)) }
      read(bytes)
    rescue Malformed => e
      refute_empty e.message
    end
  end
end
