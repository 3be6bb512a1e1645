# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require_relative "../support/recording_builder"

# `pitwall compare A.pit B.pit --view structure`.
class CompareStructureTest < Minitest::Test
  include CommandLine

  MAIN = ["<main>", "/srv/shop/test.rb", 1, 0].freeze
  GEMS = "/usr/lib/ruby/gems/3.4.0/gems"
  SERVE = ["Rack::Test#get", "#{GEMS}/rack-test-2.1/lib/rack/test.rb", 3, 0].freeze
  ROUTE = ["Router#serve", "#{GEMS}/router-1.0/lib/router.rb", 3, 0].freeze
  TEST = ["ControllerTest#get", "/srv/shop/test.rb", 3, 0].freeze
  ACTION = ["Orders#show", "/srv/shop/orders.rb", 5, 0].freeze
  LOAD = ["Array#each", "", 0, 0, 1].freeze
  MS = 1_000_000

  def trace(name, rows, **head)
    bytes = RecordingBuilder.build(mode: "none", **head) do |segment|
      segment.thread 1, "main"
      rows.each { |stack, calls, ms| segment.calls stack: stack, calls: calls, wall: ms * MS }
      segment.traced
    end
    File.binwrite(file(name), bytes)
  end

  def sampled(name, rows)
    bytes = RecordingBuilder.build do |segment|
      segment.thread 1, "main"
      rows.each { |stack, wall| segment.row stack: stack, wall: wall }
    end
    File.binwrite(file(name), bytes)
  end

  def setup
    super
    trace("a.pit", [[[MAIN], 1, 1], [[MAIN, TEST], 10, 2], [[MAIN, TEST, ACTION], 10, 50],
                    [[MAIN, TEST, ACTION, LOAD], 30, 40]])
    trace("b.pit", [[[MAIN], 1, 1], [[MAIN, SERVE], 10, 8], [[MAIN, SERVE, ROUTE], 10, 20],
                    [[MAIN, SERVE, ROUTE, ACTION], 10, 50], [[MAIN, SERVE, ROUTE, ACTION, LOAD], 90, 60]])
  end

  def pitwall(*arguments)
    super(*arguments, env: { "PITWALL_DEBUG" => nil }).tap { |result| result.out.force_encoding(Encoding::UTF_8) }
  end

  def structure(*options) = pitwall("compare", "a.pit", "b.pit", "--view", "structure", *options)

  def test_text
    result = structure
    assert_equal [0, ""], [result.status.exitstatus, result.err]
    lines = result.out.lines(chomp: true)
    assert_operator lines.size, :<=, 40
    assert_equal "b.pit against a.pit: 93.0 ms → 139 ms (+46.0 ms), 51 → 121 calls", lines[0]
    assert_equal "only B runs +28.0 ms, only A runs −2.00 ms, what both run +20.0 ms", lines[1]
    assert_match(/^\+20\.0 ms +10  Router#serve +gems\/router\/lib\/router\.rb$/, result.out)
    assert_match(/^\+8\.00 ms +10  Rack::Test#get/, result.out)
    assert_match(/^−2\.00 ms +10  ControllerTest#get/, result.out)
    assert_match(/^\+20\.0 ms  30 → 90  Array#each$/, result.out)
    assert_match(/^ *90\.0 ms +110 ms +\+20\.0 ms +10 +↪ Orders#show/, result.out)
    assert_match(/both run Orders#show \(90\.0 ms → 110 ms\) under different callers/, result.out)
    new, gone = ["Only b.pit", "Only a.pit"].map { |title| lines.index { |line| line.include?(title) } }
    assert_operator new, :<, gone
  end

  def test_without_the_option_nothing_changes
    plain = pitwall("compare", "a.pit", "b.pit")
    assert_equal plain.out, pitwall("compare", "a.pit", "b.pit", "--view", "methods").out
    refute_includes plain.out, "Only b.pit"
  end

  def test_json_and_markdown
    object = JSON.parse(structure("--format", "json").out)
    assert_equal "pitwall/compare-1", object["schema"]
    found = object.fetch("structure")
    assert_equal [true, [51, 121], 46 * MS], found.values_at("exact", "calls", "change_ns")
    assert_equal [["Router#serve", 20 * MS, 10], ["Rack::Test#get", 8 * MS, 10]],
                 found["new"].map { |one| one.values_at("name", "cost_ns", "calls") }
    shown = found["tree"].find { |row| row["name"] == "Orders#show" }
    assert_equal ["both", [90 * MS, 110 * MS], ["ControllerTest#get", "<main>"]],
                 shown.values_at("presence", "total_ns", "callers_in_base")
    assert_equal "```", structure("--format", "markdown").out.lines(chomp: true).first
  end

  def test_filters
    assert_match(/\Acompared: folded below Orders#show\n/, structure("--blackbox", "Orders#show").out)
    refute_includes structure("--blackbox", "Orders#show").out, "Array#each"
    refute_includes structure("--hide", "Router#serve").out, "Router#serve  "
    assert_includes structure("--only", "gems").out, "Router#serve"
    found = JSON.parse(structure("--blackbox", "Orders#show", "--format", "json").out)
    assert_equal({ "blackbox" => ["Orders#show"] }, found["filters"])
    File.write(file(".pitwall.yml"), "blackbox: {action: [Orders#show]}")
    refute_includes structure("--blackbox", "@action").out, "Array#each"
    assert_one_line 2, /no method "nope" in the recordings/, structure("--blackbox", "nope")
  end

  # The table of methods, too.
  def test_methods_are_folded
    methods = lambda do |*options|
      found = pitwall("compare", "x.pit", "y.pit", "--format", "json", *options)
      assert_includes [0, 4], found.status.exitstatus, found.err
      JSON.parse(found.out)
    end
    rows = [[[MAIN, ACTION], 10_000], [[MAIN, ACTION, LOAD], 10_000]] * 60
    sampled("x.pit", rows)
    sampled("y.pit", rows)
    assert_includes methods.call.to_s, "Array#each"
    boxed = methods.call("--blackbox", "Orders#show")
    refute_includes boxed.to_s, "Array#each"
    assert_equal({ "blackbox" => ["Orders#show"] }, boxed["filters"])
    assert_one_line 2, /--blackbox: no method "nope" in the recording/,
                    pitwall("compare", "x.pit", "y.pit", "--blackbox", "nope")
  end

  def test_samples_tell_doubt
    rows = [[[MAIN, ACTION], 10_000]] * 60
    sampled("x.pit", rows)
    sampled("y.pit", [*rows, [[MAIN, ACTION, LOAD], 4000]])
    result = pitwall("compare", "x.pit", "y.pit", "--view", "structure")
    assert_equal 0, result.status.exitstatus, result.err
    assert_match(/^\+4\.00 ms  \?  Array#each$/, result.out)
    assert_includes result.out, "? may be chance, or too little to be tested; one run each"
  end

  def test_several_runs
    result = structure("--before", "a.pit", "--after", "b.pit")
    assert_includes result.out, "(means of 2 and 2 runs)"
  end

  def test_what_cannot_be_compared
    trace("empty.pit", [])
    sampled("x.pit", [[[MAIN], 9]])
    trace("other.pit", [[[["other", "/o.rb", 1, 0]], 3, 9]], program: "other.rb")
    empty = pitwall("compare", "a.pit", "empty.pit", "--view", "structure")
    assert_equal 4, empty.status.exitstatus
    assert_includes empty.out, "Structure: not known, side B has a recording without any call of what is compared"
    assert_one_line 2, /is traced and .* is not/, pitwall("compare", "a.pit", "x.pit", "--view", "structure")
    other = pitwall("compare", "a.pit", "other.pit", "--view", "structure").out
    assert_includes other, "! different programs"
    assert_includes other, "! the sides have no call path in common: are they the same program?"
    assert_one_line 2, /--limit: is for call paths: add --view structure/,
                    pitwall("compare", "a.pit", "b.pit", "--limit", "3")
    assert_one_line 2, /--view: is for two recordings/, pitwall("compare", "-e", "1", "-e", "2", "--view", "structure")
    assert_one_line 2, /--view structure: compares call paths/, structure("--predicted", "a.rb:1")
  end

  def test_widths
    view = lambda do |width|
      require "pitwall/show"
      sides = %w[a b].map do |name|
        Pitwall::Analyse::ProfileChange::Side.new(recordings: [Pitwall::Record.read(file("#{name}.pit")).segments])
      end
      change = Pitwall::Analyse::StructureChange.compare(a: sides[0], b: sides[1])
      Pitwall::Show::StructureView.new(change, base: "a", side: "b").lines(width: width, palette: Pitwall::Show::Plain)
    end
    [60, 100, 160].each { |width| assert_empty view.call(width).select { |line| line.size > width }, width.to_s }
  end

  def test_a_page_has_it
    assert_equal 0, pitwall("compare", "a.pit", "b.pit", "--format", "html", "--out", "c.html").status.exitstatus
    data = Zlib.inflate(File.read(file("c.html"))[/id="data">([^<]*)/, 1].unpack1("m"))
    object = JSON.parse(data.byteslice(4, data.unpack1("V")).force_encoding("UTF-8"))
    assert_equal %w[new new gone more], object["structure"]["rows"].map { |row| row["kind"] }
    assert_equal 0, structure("--format", "html", "--out", "d.html").status.exitstatus
  end
end
