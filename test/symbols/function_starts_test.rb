# frozen_string_literal: true

require "tempfile"
require_relative "../test_helper"
require_relative "../support/native_objects"
require "pitwall/symbols"

# Where functions begin, by nm and readelf.
class FunctionStartsTest < Minitest::Test
  FunctionStarts = Pitwall::Symbols::FunctionStarts
  EVIL = [0, 1, 7, 56, 64, 255, 65_535, 2**31 - 1, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 8, 2**64 - 1].freeze

  class << self
    attr_reader :objects
  end
  @objects = NativeObjects.new
  Minitest.after_run { @objects.remove }
  @objects.c
  @objects.stripped("libshop.so", "stripped.so")

  def objects = self.class.objects

  def test_each_function_of_a_stripped_object
    starts = FunctionStarts.read(objects.path("stripped.so"))
    functions = objects.functions("libshop.so").values_at("hidden", "hidden_too", "shown")
    functions.each do |address|
      assert_equal address, starts.start(address)
      assert_equal address, starts.start(address + 1)
    end
    assert_equal functions.max, starts.start(2**62)
    assert_nil starts.start(0)
  end

  # The slow way: each function of the C library that nm lists.
  def test_functions_of_a_large_library
    library = File.read("/proc/self/maps")[%r{/\S*libc\.so\.6}]
    skip "no C library is loaded" unless library
    starts = FunctionStarts.read(library)
    listed = IO.popen(["nm", "-D", "--defined-only", library], &:readlines).map(&:split)
    functions = listed.select { |_, type, _| type.match?(/\A[TWi]\z/) }.map { |address, _, _| address.hex }.uniq
    assert_operator functions.count { |address| starts.start(address) == address }, :>, functions.size * 0.95
    functions.each { |address| assert_operator starts.start(address), :<=, address }
  end

  # Addresses and places in the file differ in the parts with data.
  def test_addresses_of_places_in_the_file
    text = IO.popen(["readelf", "-lW", objects.path("libshop.so")], &:read)
    loads = text.scan(/LOAD +0x(\h+) 0x(\h+) 0x\h+ 0x(\h+)/).map { |row| row.map(&:hex) }
    starts = FunctionStarts.read(objects.path("libshop.so"))
    assert_operator loads.count { |offset, address, _| offset != address }, :>, 0
    loads.each do |offset, address, size|
      [0, size / 2, size - 1].each { |more| assert_equal address + more, starts.address(offset + more) }
    end
    assert_nil starts.address(2**40)
  end

  def test_other_files_know_nothing
    Dir.mktmpdir do |dir|
      File.mkfifo(File.join(dir, "pipe"))
      texts = ["", "text\n", "\x7FELF", "\x7FELF#{"\xFF" * 200}"].each_with_index.map do |bytes, at|
        File.join(dir, at.to_s).tap { |path| File.binwrite(path, bytes) }
      end
      [dir, File.join(dir, "pipe"), File.join(dir, "missing"), "/dev/zero", *texts].each do |path|
        starts = FunctionStarts.read(path)
        assert_equal [nil, nil], [starts.start(1), starts.address(1)], path
      end
    end
  end

  # A header that counts more functions than the table has room for, or than are read.
  def test_counts_that_are_too_large
    bytes = File.binread(objects.path("stripped.so"))
    table = bytes.index([1, 0x1B, 0x03, 0x3B].pack("C4"))
    Tempfile.create("counts") do |file|
      [2**32 - 1, 4_000_001, 1000].each do |count|
        File.binwrite(file.path, bytes.dup.tap { |bad| bad[table + 8, 4] = [count].pack("L<") })
        assert_nil FunctionStarts.read(file.path).start(2**40), count
      end
    end
  end

  def test_random_damage
    random = Random.new(20_261_124)
    good = File.binread(objects.path("stripped.so"))
    table = good.index([1, 0x1B, 0x03, 0x3B].pack("C4"))
    known = 0
    Tempfile.create("damaged") do |file|
      1200.times do |round|
        bad = good.dup
        random.rand(1..4).times do
          value = [EVIL.sample(random: random)].pack("Q<").byteslice(0, 1 << random.rand(4))
          bad[random.rand(3).zero? ? table + random.rand(60) : random.rand(700), value.bytesize] = value
        end
        bad = bad.byteslice(0, random.rand(bad.bytesize)) if random.rand(5).zero?
        File.binwrite(file.path, bad)
        starts = FunctionStarts.read(file.path)
        known += 1 if starts.start(2**70)
        [0, 0x1100, 2**40, 2**64 - 1].each { |place| assert_kind_of Integer, starts.address(place) || 0, round }
      end
    end
    assert_includes 100..1100, known
  end
end
