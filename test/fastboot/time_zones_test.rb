# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/fastboot_program"
require_relative "../support/zone_file"
require "tzinfo"
require "pitwall/fastboot/setup"

# Time zones that tzinfo reads from files are the same, whether the accelerator has them or not.
class FastbootTimeZonesTest < Minitest::Test
  include FastbootProgram

  LIBS = ZoneFile::LIBS

  # Prints all that a program can tell of the zones in files: classes, variables, what is frozen, what is one object.
  PROGRAM = <<~'RUBY'.sub("READ_BY\n", ZoneFile::READER)
    require "tzinfo"
    load "./empty.rb" # the accelerator looks whether tzinfo is loaded
    def picture(value, seen)
      return [:again, seen[value]] if seen.key?(value)
      return [value.class, value] if value.is_a?(Integer)

      seen[value] = seen.size
      own = [value.class, value.frozen?]
      case value
      when String then [*own, value, value.encoding]
      when Array then [*own, value.map { |one| picture(one, seen) }]
      else [*own, value.instance_variables.map { |name| [name, picture(value.instance_variable_get(name), seen)] }]
      end
    end

    READ_BY
    seen = {}.compare_by_identity
    (ENV["ZONES"] || "zones/*").then { |pattern| Dir[pattern].sort }.each do |path|
      zone = READER.read(path)
      puts "#{path} #{picture(zone, seen).inspect}"
      again = READER.read(path)
      same = zone.is_a?(Array) ? zone.zip(again).any? { |one, other| one.equal?(other) } : zone.equal?(again)
      puts "#{path} is #{zone == again ? "equal" : "another"}, #{same ? "shared" : "its own"}"
    rescue Exception => error
      puts "#{path} #{error.class} #{error.message} #{error.backtrace.grep(/tzinfo/).size}"
    end
  RUBY

  def setup
    super
    write_files("empty.rb" => "", "main.rb" => PROGRAM)
  end

  def zone(...) = ZoneFile.bytes(...)

  STANDARD = [[-17_762, false, "LMT"], [-18_000, false, "EST"], [-14_400, true, "EDT"]].freeze
  RULE = "EST5EDT,M3.2.0,M11.1.0"

  def random_zone(random)
    types = Array.new(random.rand(1..6)) do |i|
      [random.rand(-56..56) * 900, random.rand(3).zero?, ["A#{i % 4}C", "+0#{i}", "LMT"].sample(random: random)]
    end
    times = Array.new(random.rand(40)) { random.rand(-2_000_000_000..2_000_000_000) }.uniq.sort
    zone(types, times.map { |time| [time, random.rand(types.size)] }, ["", nil, "<-03>3", RULE].sample(random: random))
  end

  def write_zones
    changes = [[-2_717_650_800, 1], [1_710_054_000, 2], [1_730_613_600, 1]]
    zones = {
      "usual" => zone(STANDARD, changes, RULE), "utc" => zone([[0, false, "UTC"]], [], "UTC0"),
      "only_rule" => zone([[-18_000, false, "EST"]], [], RULE), "old" => zone(STANDARD, changes.drop(1), nil),
      "fixed" => zone(STANDARD.take(2), changes.take(1), "EST5"), "no_rule" => zone(STANDARD, changes, ""),
      "negative" => zone([[3600, false, "IST"], [0, true, "GMT"]], [[1_000_000_000, 1], [1_020_000_000, 0]],
                         "IST-1GMT0,M10.5.0,M3.5.0/1"),
      "julian" => zone(STANDARD, changes, "EST5EDT,J60/2,300/3"),
      "wrong" => "TZif3", "empty" => "", "text" => "no zone",
      "short" => zone(STANDARD, changes, RULE)[0..-30], "bad_rule" => zone(STANDARD, changes, "EST5EDT,M"),
      "not_rising" => zone(STANDARD, changes.reverse, RULE)
    }
    random = Random.new(Minitest.seed)
    40.times { |i| zones["random#{i}"] = random_zone(random) }
    write_files(zones.transform_keys { |name| "zones/#{name}" })
    File.symlink("usual", file("zones/link"))
    Dir.mkdir(file("zones/folder"))
  end

  def libs = LIBS.map { |path| "-I#{path}" }

  def run_plain(*options, **others) = plain(*libs, *options, "main.rb", **others)

  def run_boot(*options, **others) = boot(*libs, "-e", "#{NOT_FRESH}; #{options.join("; ")}; load 'main.rb'", **others)

  def data(boot) = boot.counts.select { |name, _| name.start_with?("data_") }

  # Zones that came from the pack. (Files that have just been written are compared by their content.)
  def data_hits(boot) = boot.counts.values_at("data_hit", "data_hit_by_content").compact.sum

  def test_zones_are_the_same
    write_zones
    expected = run_plain
    assert_operator expected.out.scan("is equal, its own").size, :>, 10
    assert_includes expected.out, "InvalidZoneinfoFile"
    first, second = Array.new(2) { run_boot.tap { |found| assert_same(expected, found) } }
    stored = first.counts["data_stored"]
    assert_operator stored, :>, 20, data(first).inspect
    # Each zone is read twice.
    assert_equal [2 * stored, nil], [data_hits(second), second.counts["data_stored"]], data(second).inspect
  end

  # Those of this machine, if there are any.
  def test_real_zones
    folder = "/usr/share/zoneinfo"
    skip "peer absent: #{folder} (the package tzdata)" unless File.directory?("#{folder}/Europe")

    env = { "ZONES" => "#{folder}/{Europe,America/A*,Etc}/*" }
    expected = run_plain(env: env)
    boots = Array.new(2) { run_boot(env: env).tap { |found| assert_same(expected, found) } }
    zones = expected.out.scan("is equal, its own").size
    assert_operator zones, :>, 50
    assert_equal 2 * zones, data_hits(boots.last), data(boots.last).inspect
  end

  def test_changed_files
    write_files("zones/a" => zone(STANDARD, [[0, 1]], RULE))
    2.times { run_boot }
    write_files("zones/a" => zone(STANDARD, [[60, 1]], RULE))
    expected = run_plain
    boots = Array.new(2) { run_boot.tap { |found| assert_same(expected, found) } }
    assert_equal [0, 2], boots.map { |found| data_hits(found) }, data(boots.first).inspect
  end

  # tzinfo makes transitions for a hundred years from now on.
  def test_another_year
    write_files("zones/a" => zone(STANDARD, [[0, 1]], RULE))
    2.times { run_boot }
    later = "class << Time; alias real_now now; def now = real_now + (400 * 86_400); end"
    write_files("later.rb" => later)
    expected = run_plain("-r./later.rb")
    found = run_boot(later)
    assert_same expected, found
    refute_equal run_plain.out, found.out
    assert_equal 1, found.counts["data_stored"], data(found).inspect
  end

  # What the program changes in tzinfo has its effect. A subclass is not known.
  CHANGES = [
    "class TZInfo::TimezoneTransition; def initialize(*) = (super(); @mine = 1); end",
    "class TZInfo::TimezoneOffset; def initialize(*) = (super(); @mine = 1); end",
    "TZInfo::DataSources.const_get(:ZoneinfoReader).prepend(Module.new { def parse(_) = 'mine' })",
    "TZInfo::DataSources.const_get(:ZoneinfoReader).prepend(Module.new { def read(_) = [super.class].inspect })",
    "TZInfo::DataSources.const_get(:ZoneinfoReader).class_eval { def read(_) = 'mine' }",
    "TZInfo::TimezoneTransition.singleton_class.prepend(Module.new { def new(*) = super.freeze })",
    "reader = TZInfo::DataSources.const_get(:ZoneinfoReader); reader.send(:remove_const, :GENERATE_UP_TO); " \
    "reader.const_set(:GENERATE_UP_TO, 2040)",
    "TZInfo.const_get(:AnnualRules).prepend(Module.new { def transitions(_) = super.reverse })",
    "sources = TZInfo::DataSources; own = Class.new(sources.const_get(:ZoneinfoReader)) { def parse(_) = 'mine' }; " \
    "sources.send(:remove_const, :ZoneinfoReader); sources.const_set(:ZoneinfoReader, own)"
  ].freeze

  def test_changed_methods
    write_files("zones/a" => zone(STANDARD, [[0, 1]], RULE))
    2.times { run_boot }
    CHANGES.each do |change|
      ["", "load './empty.rb'; "].each do |before| # before or after the accelerator has replaced `read`
        write_files("change.rb" => "require 'tzinfo'; #{before}#{change}")
        expected = run_plain("-r./change.rb")
        found = run_boot("require './change.rb'")
        assert_same expected, found, change
        # One changes nothing. The year is known, so the pack has the zone of the first of the two boots.
        assert_equal 0, data_hits(found), change unless change.match?(/super\.class|GENERATE_UP_TO/)
      end
    end
  end

  # A program may give a reader other objects than tzinfo does, or singleton methods.
  def test_other_readers
    write_files("zones/a" => zone(STANDARD, [[0, 1]], RULE))
    2.times { run_boot }
    ["READER.extend(Module.new { def parse(_) = 'mine' })",
     "READER.instance_variable_set(:@posix_tz_parser, Class.new { def parse(_) = nil }.new)",
     "parser = READER.instance_variable_get(:@posix_tz_parser); def parser.parse(_) = nil",
     "parser = READER.instance_variable_get(:@posix_tz_parser); def parser.get_offset_from_hms(*) = super + 60"]
      .each do |change|
        write_files("main.rb" => PROGRAM.sub(/^seen = /, "#{change}\n\\0"))
        expected = run_plain
        2.times { assert_same expected, run_boot, change }
      end
    write_files("main.rb" => PROGRAM)
    assert_same run_plain, run_boot, "nothing of it was stored"
  end

  # Somebody changes the installed gem, but not its version.
  def test_a_changed_gem
    write_files("zones/a" => zone(STANDARD, [[0, 1]], RULE))
    FileUtils.cp_r(LIBS.grep(/tzinfo/).first, file("gem"))
    libs = ["-I#{file("gem")}", *LIBS.grep_v(/tzinfo/).map { |path| "-I#{path}" }]
    define_singleton_method(:libs) { libs }
    2.times { run_boot }
    path = file("gem/tzinfo/annual_rules.rb")
    source = File.read(path)
    File.write(path, source.sub("at.value)", "at.value + 1)"))
    refute_equal source, File.read(path)
    expected = run_plain
    found = run_boot
    assert_same expected, found
    assert_equal 1, found.counts["data_stored"], data(found).inspect
  end

  def test_switched_off
    write_files("zones/a" => zone(STANDARD, [[0, 1]], RULE))
    expected = run_plain
    found = Array.new(2) { run_boot(env: { "PITWALL_FASTBOOT_ZONEINFO" => "off" }) }.last
    assert_same expected, found
    assert_empty data(found)
  end

  # ---- the bytes ----

  Zones = Pitwall::Fastboot::ZoneData
  Deduper = Struct.new(:texts) do
    def dedupe(text) = texts[text] ||= text.dup.freeze
  end

  def reader
    @reader ||= Object.new.tap { |one| one.instance_variable_set(:@string_deduper, Deduper.new({})) }
  end

  def offset(base, saved, text)
    TZInfo::TimezoneOffset.new(base, saved, reader.instance_variable_get(:@string_deduper).dedupe(text))
  end

  def transitions
    winter, summer = offset(3600, 0, "CET"), offset(3600, 3600, "CEST")
    Array.new(20) do |i|
      around = i.even? ? [winter, summer] : [summer, winter]
      TZInfo::TimezoneTransition.new(*around, (i * 10_000_000) - 100)
    end
  end

  def test_what_is_not_usual
    assert_nil Pitwall::Fastboot.unavailable
    list = transitions
    assert_equal list, Zones.load(Zones.dump(list, reader), reader)
    one = list.first
    mine = TZInfo::TimezoneTransition.new(one.offset, one.previous_offset, 1 << 70)
    frozen = TZInfo::TimezoneTransition.new(one.offset, one.previous_offset, 0).freeze
    more = TZInfo::TimezoneTransition.new(one.offset, one.previous_offset, 0)
    more.instance_variable_set(:@mine, 1)
    lone = TZInfo::TimezoneTransition.new(one.offset, one.previous_offset, 0)
    def lone.mine = 1
    text = TZInfo::TimezoneTransition.new(one.offset, offset(0, 0, "X" * 256), 0)
    other_text = TZInfo::TimezoneTransition.new(one.offset, TZInfo::TimezoneOffset.new(0, 0, "CET".dup.freeze), 0)
    large = TZInfo::TimezoneTransition.new(one.offset, offset(1 << 31, 0, "CET"), 0)
    values = [nil, [], [nil], "x", list.dup.freeze, [one, one], list.reverse, [mine], [frozen], [more], [lone], [text],
              [other_text], [large], [one.offset], offset(0, 0, "X").freeze, offset(1.5, 0, "X"),
              Array.new(257) { |i| TZInfo::TimezoneTransition.new(offset(i, 0, "A"), one.offset, i) },
              list.dup.tap { |array| array.instance_variable_set(:@mine, 1) }]
    values.each { |value| assert_nil Zones.dump(value, reader), value.inspect[0, 200] }
  end

  # Bytes with a right checksum are never damaged. If they were, that is an exception and nothing else.
  def test_damaged_bytes
    assert_nil Pitwall::Fastboot.unavailable
    bytes = Zones.dump(transitions, reader)
    random = Random.new(Minitest.seed)
    outcomes = Array.new(2000) do
      damaged = bytes.dup
      where = random.rand(2).zero? ? 30 : damaged.size
      random.rand(1..3).times { damaged.setbyte(random.rand(where), random.rand(256)) }
      damaged = damaged[0, random.rand(damaged.size + 1)] if random.rand(3).zero?
      Zones.load(damaged, reader).class
    rescue StandardError => error
      error.class
    end
    assert_operator outcomes.count(ArgumentError), :>, 100, outcomes.tally.inspect
    assert_operator outcomes.count(Array), :>, 100, outcomes.tally.inspect
  end

  def test_under_gc_stress
    assert_nil Pitwall::Fastboot.unavailable
    list = transitions
    zone = offset(0, 0, "UTC")
    GC.stress = true
    bytes = Zones.dump(list, reader)
    found = Zones.load(bytes, reader)
    alone = Zones.load(Zones.dump(zone, reader), reader)
    GC.stress = false
    assert_equal [list, zone], [found, alone]
    assert(found.each_cons(2).all? { |one, other| one.offset.equal?(other.previous_offset) })
  ensure
    GC.stress = false
  end
end
