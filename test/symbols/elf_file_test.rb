# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/native_objects"
require "pitwall/symbols"
require "tempfile"

class ElfFileTest < Minitest::Test
  ElfFile = Pitwall::Symbols.const_get(:ElfFile)

  class << self
    attr_reader :objects
  end
  @objects = NativeObjects.new
  Minitest.after_run { @objects.remove }
  @objects.c
  @objects.stripped("libshop.so", "stripped.so")

  def objects = self.class.objects

  def open(name, &block) = ElfFile.open(objects.path(name), &block)

  def test_build_id
    assert_equal objects.build_id("libshop.so"), open("libshop.so", &:build_id)
    assert_equal objects.build_id("libshop.so"), open("stripped.so", &:build_id)
    objects.without_build_id("libshop.so", "nameless.so")
    assert_equal "", open("nameless.so", &:build_id)
  end

  def test_each_function_that_nm_lists
    names = objects.functions("libshop.so")
    found = open("libshop.so") { |elf| elf.names(names.values) }
    names.each { |name, address| assert_equal address, names[found[address]], name }
    assert_equal %w[hidden hidden_too shown], found.values_at(*names.values_at("hidden", "hidden_too", "shown"))
    assert open("libshop.so", &:symtab?)
  end

  def test_a_stripped_object_has_exported_functions_only
    all = objects.functions("libshop.so")
    found = open("stripped.so") { |elf| elf.names(all.values) }
    assert_equal "shown", found[all["shown"]]
    assert_nil found[all["hidden"]]
    refute open("stripped.so", &:symtab?)
  end

  def test_an_address_within_a_function_belongs_to_it_and_no_other_address_does
    at = objects.functions("libshop.so")["hidden"]
    names = open("libshop.so") { |elf| elf.names([at + 1, 1, 2**62]) }
    assert_equal({ at + 1 => "hidden" }, names)
  end

  # The slow way: each symbol, for each address.
  def test_names_of_a_large_library_as_nm_has_them
    library = File.read("/proc/self/maps")[%r{/\S*libc\.so\.6}]
    skip "no C library is loaded" unless library
    exported = Open3.capture2("nm", "-D", "--defined-only", library).first.lines.map(&:split)
    exported = exported.select { |_, type, _| type.match?(/\A[TWi]\z/) }
    by_address = exported.group_by { |address, _, _| address.hex }
                         .transform_values { |all| all.map { |_, _, name| name.split("@").first } }
    found = ElfFile.open(library) { |elf| elf.names(by_address.keys) }
    by_address.each do |address, names|
      best = names.min_by { |name| [name[/\A_*/].size, name.size, name] }
      assert_equal best, found[address]
    end
  end

  def test_other_files_are_refused
    ["", "text\n", "\x7FELF", "\x7FELF\x01\x01#{"\0" * 100}", "#{"\x7FELF\x02\x01".b}#{"\xFF" * 58}"].each do |bytes|
      Tempfile.create("other") do |file|
        File.binwrite(file.path, bytes)
        assert_raises(ElfFile::Malformed) { ElfFile.open(file.path) { |elf| [elf.build_id, elf.names([1])] } }
      end
    end
    assert_raises(ElfFile::Malformed) { ElfFile.open("/") { |elf| elf } }
    refute ElfFile.file?("/dev/zero")
    refute ElfFile.file?("/nowhere")
  end

  # Integers that break readers, where an object keeps offsets, sizes and counts.
  EVIL = [0, 1, 7, 24, 64, 255, 65_535, 2**31 - 1, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 8, 2**64 - 1].freeze

  def test_damaged_objects_are_refused_or_read
    random = Random.new(1)
    good = File.binread(objects.path("libshop.so"))
    sections = good.unpack1("@40Q<")
    addresses = objects.functions("libshop.so").values + [0, 1, 2**64 - 1]
    outcomes = Hash.new(0)
    Tempfile.create("damaged") do |file|
      1500.times do |round|
        bad = good.dup
        (1 + random.rand(6)).times do
          at = random.rand(2).zero? ? random.rand(1024) : sections + random.rand(bad.bytesize - sections)
          value = [EVIL.sample(random: random)].pack("Q<").byteslice(0, 1 << random.rand(4))
          bad[at, value.bytesize] = value
        end
        bad = bad.byteslice(0, random.rand(bad.bytesize)) if random.rand(4).zero?
        File.binwrite(file.path, bad)
        outcomes[outcome(file.path, addresses, round)] += 1
      end
    end
    assert_operator outcomes[:read], :>, 100
    assert_operator outcomes[:refused], :>, 100
  end

  def outcome(path, addresses, round)
    ElfFile.open(path) do |elf|
      assert_match(/\A\h*\z/, elf.build_id, round)
      elf.symtab?
      elf.names(addresses).each_value { |name| assert name.valid_encoding?, round }
    end
    :read
  rescue ElfFile::Malformed
    :refused
  end
end
