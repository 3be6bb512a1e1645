# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/allocating_program"

# Programs whose objects are known by construction.
class AllocationsTest < Minitest::Test
  include AllocatingProgram

  def assert_whole(name = "a.pit") = assert_balanced(segment(name))

  def test_counts_by_line_and_class
    run_program(<<~'RUBY')
      Thing = Class.new
      def job
        100.times { Thing.new }
        200.times { [Thing.new, "x"] }
        $kept = Array.new(7) { |i| i.to_s * 50 }
        300.times { { a: rand } }
      end
      job
      follow { job }
    RUBY
    assert_whole
    counts = by_line
    assert_equal [100, 200, 200, 200], counts.values_at([3, "Thing"], [4, "Thing"], [4, "String"], [4, "Array"])
    assert_equal 14, counts[[5, "String"]]
    assert_equal 1, counts[[5, "Array"]]
    assert_equal 300, counts[[6, "Hash"]]
    retained = by_line("a.pit", :retained)
    # What a register or a slot of the machine stack still names lives as well.
    assert_includes 7..9, retained[[5, "String"]]
    assert_includes 0..2, retained[[3, "Thing"]]
    assert_operator by_line("a.pit", :bytes)[[5, "String"]], :>=, 7 * 50
    assert_equal ["allocations"], segment.header.collectors
    assert_equal "none", segment.header.mode
  end

  def test_ages
    run_program(<<~'RUBY')
      def make(n) = Array.new(n) { Object.new }
      GC.disable
      follow do
        $short = make(50)
        GC.start
        $short = nil
        $long = make(60)
        6.times { GC.start }
        $long = nil
        GC.start
        $kept = make(30)
        4.times { GC.start }
      end
    RUBY
    assert_whole
    row = allocations.rows.find { |found| found[:class] == "Object" }
    assert_equal 140, row.count
    assert_includes 90..92, row.old # what lived through three collections: the second and the third lot
    assert_includes 2..3, row.min_age
    assert_includes 7..12, row.max_age # a register may name one a while longer
  end

  def test_samples_and_allocations_in_one_recording
    run_program(<<~'RUBY')
      def job = burn(0.2) { }
      def objects = 5000.times { Object.new }
      follow(mode: "signal") { job; objects }
    RUBY
    assert_whole
    assert_sane(segment)
    assert_sampled("Object#job", segment)
    assert_equal 5000, by_line[[2, "Object"]]
    tree = Pitwall::Analyse::CallTreeBuilder.build([segment], weights: %i[wall objects bytes])
    assert_equal allocations.objects, tree.total(:objects)
    assert_operator tree.total(:wall), :>, 0
  end

  def test_whole_stacks
    run_program(<<~'RUBY')
      def leaf = Object.new
      def one = 10.times { leaf }
      def two = 20.times { leaf }
      def deep(n) = n.zero? ? leaf : deep(n - 1)
      follow("a.pit", { "stacks" => "1" }) { one; two; deep(100); Fiber.new { leaf }.resume; Thread.new { leaf }.join }
    RUBY
    assert_whole
    tree = Pitwall::Analyse::CallTreeBuilder.build([segment], weights: [:objects])
    totals = tree.methods.map(&:name).zip(tree.total_by_method(:objects)).to_h
    assert_equal 33, totals["Object#leaf"]
    assert_equal 10, totals["Object#one"]
    assert_equal 20, totals["Object#two"]
    assert_equal 1, totals["Object#deep"]
  end

  # Objects of three places in known proportions, the process forking meanwhile.
  def test_in_bursts
    run_program(<<~'RUBY')
      def eight = 8.times { Object.new }
      def three = 3.times { |i| [i] }
      def work = (eight; three; burn(0.0001))
      follow("a.pit", { "bursts" => "1", "one_in" => "5" }, mode: "signal") do
        limit = cpu + 1.5
        work while cpu < limit
        fork { 10.times { work } }
        Process.wait
      end
    RUBY
    assert_sane(segment)
    counts = by_line
    assert_in_delta 8.0 / 3, counts[[1, "Object"]].fdiv(counts[[2, "Array"]]), 0.4
    found = allocations
    refute_predicate found, :ends?
    assert_operator found.one_in, :>, 1.5
    assert_in_delta segment.allocation_totals.allocated, found.objects + found.special(1) + found.special(2), 10
    tree = Pitwall::Analyse::CallTreeBuilder.build([segment], weights: [:objects])
    totals = tree.methods.map(&:name).zip(tree.total_by_method(:objects)).to_h
    assert_in_delta totals["Object#work"], totals["Object#eight"] + totals["Object#three"], totals["Object#work"] * 0.9
  end

  # What one site's counters lose another's gain, and no row may be left behind for it.
  def test_rows_add_up_though_objects_are_shown_late
    run_program(<<~'RUBY')
      NESTED = [[1, [2]], [3]]
      follow("a.pit", {}) do
        10_000.times { NESTED.flatten }
        sleep 1.2
        10_000.times { NESTED.flatten }
      end
    RUBY
    assert_equal segment.allocation_totals.allocated, segment.sites.sum(&:count)
  end

  # Half of what is made are Ruby's own (environments): they are thinned out like all others. A burst that meets code
  # without safepoints must not last as long as that.
  def test_in_bursts_all_kinds_are_sampled_alike
    run_program(<<~'RUBY')
      TEXT = "a," * 2_000_000
      def closures = 200.times { |i| -> { i } }
      follow("a.pit", { "bursts" => "1", "one_in" => "500" }, mode: "signal") do
        limit = cpu + 1
        closures while cpu < limit
        3.times { TEXT.split(",") }
      end
    RUBY
    found = allocations
    by_name = found.rows(by: [:class]).to_h { |row| [row[:class], row.count] }
    assert_in_delta 1.0, found.special(1).fdiv(by_name["Proc"]), 0.5
    assert_operator found.special(2), :<, 20_000
    assert_in_delta segment.allocation_totals.allocated, found.objects + found.special(1) + found.special(2), 10
  end

  def test_the_block_form
    out = run_program(<<~'RUBY', options: ["-rjson"])
      def job = 100.times { [Object.new] }
      result = Pitwall.allocations(record: "a.pit") { job; :value }
      p result.value
      puts result.sites.select { |site| site.path.end_with?("program.rb") }.map { |site| "#{site[:class]} #{site.count} #{site.line}" }.sort
      p result.objects == result.sites.sum(&:count)
      p Pitwall.allocations(record: "b.pit", stacks: true) { job }.sites(by: [:method]).first.method
      puts problem { Pitwall.allocations(one_in: 0) {} }
    RUBY
    assert_equal [":value", "Array 100 1", "Object 100 1", "true", "\"block in Object#job\"", "UsageError: one_in 0: choose a whole number from 1"],
                 out.lines(chomp: true)
  end

  # By Ruby's own measure of the same objects.
  def test_bytes_of_what_is_retained
    out = run_program(<<~'RUBY', options: ["-robjspace"])
      X = "x"
      def keep = Array.new(200) { |i| X * (10 * i) }
      def drop = 500.times { "y" * 1000 }
      keep # ZJIT makes a string of its own when it compiles
      follow { $kept = keep; drop }
      p $kept.sum { |text| ObjectSpace.memsize_of(text) }
    RUBY
    kept, dropped = %w[keep drop].map { |name| allocations.rows(by: %i[method class]).find { |row| row.method == "block in Object##{name}" && row[:class] == "String" } }
    assert_equal [200, Integer(out)], [kept.retained, kept.retained_bytes]
    assert_operator dropped.retained_bytes, :<, dropped.bytes / 10 # a few that the machine's stack still names
    assert allocations.retained_bytes?
  end

  # What Pitwall makes while it starts and stops is not the block's.
  def test_an_empty_block_allocates_nothing
    run_program("2.times { |i| follow(\"\#{i}.pit\") { nil } }")
    2.times { |i| assert_equal [0, []], [allocations("#{i}.pit").objects, allocations("#{i}.pit").rows.reject(&:special)] }
  end

  def test_one_in_many
    run_program("follow('a.pit', { 'one_in' => '10' }) { 100_000.times { Object.new } }")
    row = allocations.rows.first
    assert_equal "Object", row[:class]
    assert_in_delta 100_000, row.count, 2000
    assert_equal segment.allocation_totals.seen, allocations.objects
  end
end

# Which places a collection is charged to.
class ChargedGCTest < Minitest::Test
  include AllocatingProgram

  def charged
    rows = allocations.rows(by: [:method])
    rows.to_h { |row| [row.method, row.gc_ns] }
  end

  def test_by_objects_where_slots_were_short
    run_program(<<~'RUBY')
      def many = 300.times { Object.new }
      def few = 100.times { Object.new }
      follow { 3000.times { many; few } }
    RUBY
    assert_balanced(segment)
    assert_operator segment.stat("gc_count"), :>, 10
    # Each of some ten runs is divided by what was allocated since the run before, and a single run may be long.
    assert_in_delta 3.0, charged.fetch("block in Object#many").fdiv(charged.fetch("block in Object#few")), 1.0
  end

  def test_by_bytes_where_malloc_was_the_cause
    run_program(<<~'RUBY')
      def small = 5.times { Object.new }
      def large = "x" * 1_000_000
      follow { 400.times { small; large } } # so few objects that no collection is for want of slots
    RUBY
    assert_balanced(segment)
    # A run that another cause brought about is divided by objects, however long it takes.
    for_bytes, others = segment.collections.partition { |run| run.cause == :malloc }
                               .map { |runs| runs.sum { |run| run.marking_ns + run.sweeping_ns } }
    assert_operator for_bytes, :>, 0
    assert_operator charged.fetch("Object#large"), :>, for_bytes / 2
    assert_operator charged.fetch("block in Object#small"), :<, others + for_bytes / 5
  end

  # 1,000 strings live through three major collections, then two minor ones, old by then; 500 are young at the last. Nothing brought any of them about.
  def test_what_collections_had_to_do
    run_program(<<~'RUBY')
      X = "x"
      def old = Array.new(1_000) { X * 2_000 }
      def young = Array.new(500) { Object.new }
      GC.disable
      follow do
        $old = old
        3.times { GC.start }
        GC.start(full_mark: false)
        $young = young
        GC.start(full_mark: false)
        $young = nil
        GC.start
        $old = nil
        GC.enable
      end
    RUBY
    assert_work(segment)
    old, young = %w[String Object].map { |name| segment.sites.select { |site| site.class_name == name && site.count >= 500 }.max_by(&:count) }
    # The machine's stack may name the young ones, which then live through the last but one.
    assert_equal [0, 4_000, 6_000], old.to_h.values_at(:minor_marks, :major_marks, :lived)
    assert_in_delta 500, young.minor_marks, 5
    assert_equal young.minor_marks + young.major_marks, young.lived
    assert_equal [0, 0], [old, young].map(&:started_ns)
    assert_in_delta 1_000, old.mallocs, 5
    assert_equal 0, young.mallocs
  end

  # What allocates brings runs about; what is only kept makes them dearer.
  def test_who_brought_collections_about_and_who_lived_in_them
    run_program(<<~'RUBY')
      def kept = Array.new(20_000) { Object.new }
      def dropped = 400_000.times { Object.new }
      $kept = nil
      follow do
        GC.disable
        $kept = kept
        GC.enable
        4.times { GC.start }
        dropped
      end
    RUBY
    assert_balanced(segment)
    kept, dropped = segment.sites.select { |site| site.class_name == "Object" && site.count >= 20_000 }.minmax_by(&:count)
    assert_operator dropped.started_ns, :>, kept.started_ns * 5
    assert_operator kept.lived, :>, dropped.lived * 5
    assert_operator kept.major_marks, :>=, 4 * 20_000
  end

  def test_collections_without_objects_are_charged_to_nobody
    run_program("follow { GC.start; 40.times { GC.start } }")
    assert_balanced(segment)
    nobody = segment.sites.find { |site| site.special == "(nobody)" }
    assert_operator nobody.gc_ns, :>, segment.stats.fetch("gc_ns").values.sum / 2
  end
end

# Which strings are equal.
class DuplicateStringsTest < Minitest::Test
  include AllocatingProgram

  def test_equal_strings
    run_program(<<~'RUBY')
      def secret = ("to" + "p secret").dup
      def other = "other #{rand}"
      follow("a.pit", { "strings" => "1" }) do
        100.times { secret; other }
        $kept = Array.new(20) { ("top " + "secret") * 1 }
        $long = Array.new(3) { "x" * 100_000 }
      end
      GC.start
    RUBY
    assert_balanced(segment)
    rows = allocations.duplicates
    long = rows.first
    assert_equal [3, 100_000], [long.count, long.length]
    assert_in_delta 200_000, long.wasted, 200
    top = rows.find { |row| row.length == 10 }
    assert_operator top.count, :>=, 100 + 20
    assert_equal [1, 5], top.places.map { |_, line, _| line }.sort
    refute(rows.any? { |row| row.length == "other 0.1234".size && row.count > 50 })
    refute_includes File.binread(file("a.pit")), "top secret"
  end

  # An oracle: contents counted one by one.
  def test_counts_are_those_of_a_slow_count
    out = run_program(<<~'RUBY')
      srand(7)
      made = Array.new(3000) { "s#{rand(40)}" + "y" * rand(30) }
      strings = []
      bang = "!"
      follow("a.pit", { "strings" => "1" }) { made.each { |text| strings << (text + bang) } }
      p strings.tally.values.select { |n| n > 1 }.sort
      p strings.tally.select { |_, n| n > 1 }.map { |text, n| [text.bytesize, n] }.sort
    RUBY
    counts, lengths = out.lines.map { |line| JSON.parse(line) }
    rows = allocations.duplicates.select { |row| row.places.any? { |path, line, _| path.end_with?("program.rb") && line == 5 } }
    assert_equal counts, rows.map(&:count).sort
    assert_equal lengths, rows.map { |row| [row.length, row.count] }.sort
  end
end
