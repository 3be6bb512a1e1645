# frozen_string_literal: true

require_relative "../../test_helper"
require_relative "../../support/imported"

# Self figures of the tools' own reports are the truth.
class ImportCallgrindTest < Minitest::Test
  include Imported

  PLAIN = <<~TEXT
    # callgrind format
    version: 1
    creator: test
    pid: 42
    cmd: ./shop
    positions: line
    events: Ir Dr
    summary: 110 11

    fl=(1) a.c
    fn=(1) main
    16 10 1
    cfn=(2) left
    calls=2 20
    +1 40 4
    cfi=(2) b.c
    cfn=(3) right
    calls=3 5
    * 60 6
    fn=(2)
    20 10 1
    cfi=(2)
    cfn=(4) leaf
    calls=2 9
    +2 30 3
    fl=(2)
    fn=(3)
    5 30 3
    cfn=(4)
    calls=4 9
    -1 30 3
    fn=(4)
    9 50 5
    +1 10 1
    jump=3 12
    11
  TEXT

  def fixture(path) = real(path)
  def text(*lines, events: "Ir") = "version: 1\nevents: #{events}\n\n#{lines.join("\n")}\n"

  def notes(recording) = recording.segments.first.header.notes.join("\n")

  def test_self_costs_are_exact_and_paths_are_split_in_proportion
    recording = imported(PLAIN)
    assert_equal({ %w[main] => 10, %w[main left] => 10, %w[main right] => 30, %w[main left leaf] => 30, %w[main right leaf] => 30 },
                 stacks(recording, :captures))
    assert_equal [42, "./shop"], recording.segments.first.header.then { |header| [header.pid, header.program] }
    assert_match(/captures are counts of Ir\ncall paths are estimates/, notes(recording))
    refute_match(/in circles/, notes(recording))
    assert_equal [110, 11], [stacks(recording, :captures), stacks(imported(PLAIN, type: "Dr"), :captures)].map { |sums| sums.values.sum }
    assert_match(/has no event Dw: it has Ir, Dr/, refused(PLAIN, type: "Dw"))
  end

  def test_lines_of_costs_and_calls
    tree = Pitwall::Analyse::CallTreeBuilder.build(imported(PLAIN).segments, weights: [:captures])
    own = Hash.new(0)
    tree.selfs(:captures).each_with_index { |value, node| own[[tree.methods[tree.node_methods[node]].name, tree.lines[node]]] += value if value.positive? }
    assert_equal({ ["main", 16] => 10, ["left", 20] => 10, ["right", 5] => 30, ["leaf", 9] => 50, ["leaf", 10] => 10 }, own)
  end

  def test_valgrinds_figures
    told = fixture("callgrind/plain.annotate.txt").scan(/^ *([\d,]+) \([\d. ]+%\)  \S+:(\S+) \[/).to_h { |cost, name| [name, cost.delete(",").to_i] }
    assert_operator told.size, :>, 6
    %w[plain jumps].each do |file|
      own = methods(imported(fixture("callgrind/#{file}.out")), :captures)
      assert_equal told, own.transform_values(&:first).slice(*told.keys), file
      assert_equal told.values.sum, own["main"].last, file
    end
    assert_match(/Bi?|Dr|ILmr/, refused(fixture("callgrind/jumps.out"), type: "none"))
    assert_operator stacks(imported(fixture("callgrind/jumps.out"), type: "Dr"), :captures).values.sum, :>, 1000
    assert(imported(fixture("callgrind/plain.out")).segments.first.frames.values.all? { |frame| frame.kind == Pitwall::Record::Frame::NATIVE })
  end

  def test_ruby_profs_figures
    told = fixture("ruby_prof/wall.methods.txt").lines.map { |line| line.chomp.split("\t") }.to_h { |name, calls, own, total| [name, [calls.to_i, own.to_f, total.to_f]] }
    recording = imported(fixture("ruby_prof/wall.callgrind"))
    walls, calls = methods(recording), methods(recording, :calls)
    compared = told.keys.grep(/\A(?:Shop|Integer|Range|Enumerable|String|Array)#[^%]/)
    assert_operator compared.size, :>, 8
    compared.each do |name|
      assert_equal told[name][0], calls[name].first, name
      assert_in_delta told[name][1] * 1e9, walls.fetch(name, [0]).first, 1500, name
    end
    assert recording.segments.first.traced?
    objects = stacks(imported(fixture("ruby_prof/allocations.callgrind")), :objects).values.sum
    assert_equal fixture("ruby_prof/allocations.methods.txt").lines.sum { |line| line.split("\t")[2].to_f.round }, objects
  end

  # sum, times and each are called at the top and again in what they call. No call path is in the file.
  def test_totals_in_circles_are_near_those_of_ruby_prof
    told = fixture("ruby_prof/wall.methods.txt").lines.map { |line| line.chomp.split("\t") }.to_h { |name, _, _, total| [name, total.to_f * 1e9] }
    totals = methods(imported(fixture("ruby_prof/wall.callgrind"))).transform_values(&:last)
    %w[Shop#tax Shop#price Shop#total Range#each Enumerator#each Integer#times Object#work].each do |name|
      assert_in_delta told[name], totals[name], told[name] / 100, name
    end
    compared = told.keys & totals.keys
    assert_operator compared.sum { |name| (told[name] - totals[name]).abs }, :<, compared.sum { |name| told[name] } * 0.03
  end

  def test_prints_for_people_are_refused_with_advice
    assert_match(/is what ruby-prof prints for people: print with its CallTreePrinter/, refused(fixture("ruby_prof/flat.txt")))
    assert_match(/is what ruby-prof prints for people/, refused(fixture("ruby_prof/graph.txt")))
    assert_match(/is what memory_profiler prints for people/, refused(fixture("memory_profiler/print.txt")))
    assert_match(/is a page, not a profile/, refused("<!DOCTYPE html><html></html>"))
    assert_match(/is what stackprof prints for people/, refused("=====\n  Mode: wall(1000)\n  Samples: 4\n"))
  end

  def test_names_of_ruby_prof
    names = { "Shop/Cart::total" => "Shop::Cart#total", "<Class/Shop>::open" => "Shop.open", "Integer::+" => "Integer#+", "Array::each*" => "Array#each",
              "Integer::*" => "Integer#*", "plain" => "plain" }
    text = text(*names.keys.flat_map { |name| ["fl=a.rb", "fn=#{name}", "1 5"] }, events: "wall_time")
    assert_equal names.values.sort, methods(imported(text)).keys.sort
    assert_equal 5000, methods(imported(text))["Integer#+"].first
  end

  def test_xdebugs_units
    recording = imported("version: 1\ncreator: xdebug 3.1 (PHP 8)\nevents: Time_(10ns) Memory_(bytes)\n\nfl=(1) a.php\nfn=(1) {main}\n1 7 30\n")
    assert_equal [{ %w[{main}] => 70 }, { %w[{main}] => 30 }], [stacks(recording), stacks(recording, :bytes)]
  end

  def test_recursion_is_folded_and_told
    lines = ["fn=main", "1 1", "cfn=even", "calls=1 2", "1 30", "fn=even", "2 10", "cfn=odd", "calls=5 3", "2 25", "fn=odd", "3 20", "cfn=even", "calls=4 2", "3 24"]
    recording = imported(text(*lines))
    assert_equal({ "main" => 1, "even" => 10, "odd" => 20 }, methods(recording, :captures).transform_values(&:first))
    assert_equal 31, methods(recording, :captures)["main"].last
    assert_match(/functions call each other in circles/, notes(recording))
    alone = imported(text("fn=a", "1 5", "cfn=b", "calls=1 1", "1 7", "fn=b", "1 7", "cfn=a", "calls=1 1", "1 5"))
    assert_equal({ "a" => 5, "b" => 7 }, methods(alone, :captures).transform_values(&:first))
  end

  # A graph of 40 layers of 2 functions, of which each calls both below, has 2**40 paths.
  def test_very_many_paths
    layers = 40
    lines = (0...layers).flat_map do |layer|
      2.times.flat_map do |side|
        calls = layer + 1 < layers ? 2.times.flat_map { |below| ["cfn=f#{layer + 1}_#{below}", "calls=1 1", "1 #{(layers - layer - 1) * 500}"] } : []
        ["fn=f#{layer}_#{side}", "1 1000", *calls]
      end
    end
    own = methods(imported(text(*lines)), :captures)
    assert_equal [1000], own.values.map(&:first).uniq
    assert_equal layers * 2, own.size
  end

  # A chain that is deeper than paths may be.
  def test_a_very_long_chain
    count = 3000
    lines = (0...count).flat_map { |at| ["fn=f#{at}", "1 1", *(["cfn=f#{at + 1}", "calls=1 1", "1 #{count - at - 1}"] if at + 1 < count)] }
    own = methods(imported(text(*lines)), :captures)
    assert_equal [1], own.values.map(&:first).uniq
    assert_equal count, own.size
  end

  def test_what_is_damaged_is_named
    { "costs are in no function" => text("1 5", "fl=a"),
      "a cost is \"99999999999999999999\"" => text("fn=a", "1 99999999999999999999"),
      "has a negative cost (-3)" => text("fn=a", "1 -3"),
      "a cost is \"NaN\"" => text("fn=a", "1 NaN"),
      "a line has 2 costs for 1 events" => text("fn=a", "1 2 3"),
      "(7) is no function yet" => text("fn=(7)", "1 2"),
      "the last line begins a call" => text("fn=a", "1 2", "cfn=b", "calls=1 2"),
      "calls= names no function" => text("fn=a", "1 2", "calls=1 2", "1 2"),
      "a number of calls is \"9999999999999999999\"" => text("fn=a", "cfn=b", "calls=9999999999999999999 2", "1 2"),
      "\"what is this\" is no line of the format" => text("fn=a", "1 2", "what is this"),
      "has no costs" => text("fn=a"),
      "a position is \"1x\"" => text("fn=a", "1x 3") }.each { |message, file| assert_includes refused(file), message }
  end
end
