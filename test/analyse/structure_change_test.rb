# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../oracle/structure"
require_relative "../support/recording_builder"
require_relative "../support/simulated_profile"
require "pitwall/analyse"
require "stringio"
require "tmpdir"

# What differs between call paths: against a slow oracle on random trees, and on programs whose difference is known.
class StructureChangeTest < Minitest::Test
  S = Pitwall::Analyse::StructureChange
  NAMES = %w[a b c d e].freeze

  # @param rows [Array] [names of a stack, ns, calls]
  def trace(rows, **head)
    bytes = RecordingBuilder.build(mode: "none", **head) do |segment|
      segment.thread 1, "main"
      rows.group_by(&:first).each do |stack, same|
        frames = stack.map { |name| [name, "/app/#{name[/\w+/]}.rb", 1, 0] }
        segment.calls stack: frames, calls: same.sum { |row| row[2] }, wall: same.sum { |row| row[1] }
      end
      segment.traced
    end
    read(bytes)
  end

  def read(bytes)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "x.pit")
      File.binwrite(path, bytes)
      return Pitwall::Record.read(path).segments
    end
  end

  def compare(a, b, **options)
    sides = [a, b].map { |side| Pitwall::Analyse::ProfileChange::Side.new(recordings: side) }
    S.compare(a: sides[0], b: sides[1], **options)
  end

  def random_rows(random)
    Array.new(random.rand(1..30)) do
      [Array.new(random.rand(1..9)) { NAMES.sample(random: random) }, random.rand(1..100) * 1000, random.rand(1..5)]
    end
  end

  # path of names → node
  def nodes(result)
    had = (1...result.paths.size).select { |node| result.present.any? { |side| side[node] } }
    had.to_h do |node|
      [result.paths.upwards(node).reverse.map { |one| result.method(one).name }, node]
    end
  end

  # name → B − A of what is of that method alone, as moves leave it
  def by_name(result)
    (1...result.paths.size).each_with_object(Hash.new(0)) do |node, sums|
      sums[result.method(node).name] += result.own_change(node)
    end
  end

  def test_paths_equal_the_oracle_on_random_trees
    random = Random.new(11)
    150.times do
      rows = Array.new(2) { random_rows(random) }
      a, b = rows.map { |side| Oracle::Structure.alone(side) }
      result = stub_moves { compare([trace(rows[0])], [trace(rows[1])]) }
      found = nodes(result)
      assert_equal Oracle::Structure.paths(a, b).sort, found.keys.sort
      found.each do |path, node|
        expected = [a, b].map { |side| Oracle::Structure.total(side, path) }
        assert_equal expected, result.totals.map { |totals| totals[node] }, path.inspect
        assert_equal [a, b].map { |side| side.fetch(path, [0, 0])[1] }, result.calls.map { |calls| calls[node] }
      end
    end
  end

  # Without moves, so that each path stays where it is.
  def stub_moves
    original = S::Moves.instance_method(:to_h)
    S::Moves.send(:define_method, :to_h) { {} }
    yield
  ensure
    S::Moves.send(:define_method, :to_h, original)
  end

  def test_properties_on_random_trees
    random = Random.new(12)
    150.times do
      a, b = Array.new(2) { [trace(random_rows(random))] }
      there = compare(a, b)
      back = compare(b, a)
      assert_equal by_name(there), by_name(back).transform_values(&:-@).tap { |sums| sums.default = 0 }
      [there, back].each { |result| check_sums(result) }
      same = compare(a, a)
      assert_equal [0] * same.paths.size, Array.new(same.paths.size) { |node| same.change(node) }
      assert_empty S::Groups.new(same).then { |groups| groups.alone(:new) + groups.alone(:gone) + groups.more }
      assert_empty same.moved
    end
  end

  def check_sums(result)
    assert_equal result.change(0), result.selfs[1].sum - result.selfs[0].sum
    groups = S::Groups.new(result)
    both = (1...result.paths.size).select { |node| result.presence(node) == :both }
    lists = %i[new gone].flat_map { |presence| groups.alone(presence) }
    assert_equal result.change(0), lists.sum(&:cost) + both.sum { |node| result.own_change(node) }
    rows = S::Outline.rows(result, limit: 10)
    assert_operator rows.size, :<=, 10
    rows.each { |row| assert_equal rows[row.parent].depth + 1, row.depth if row.parent }
  end

  def test_recursion_is_one_path
    deep = [[%w[main fact] + ["fact"] * 40, 10, 1]]
    flat = [[%w[main fact], 10, 1]]
    result = compare([trace(deep)], [trace(flat)])
    assert_equal [%w[main], %w[main fact]], nodes(result).keys.sort
    assert_equal 0, result.change(0)
    mutual = [[%w[main] + %w[odd even] * 30, 10, 1]]
    assert_equal [%w[main], %w[main odd], %w[main odd even]], nodes(compare([trace(mutual)], [trace(mutual)])).keys
  end

  # B calls the same work through wrappers, so that only they are new.
  def test_work_under_other_callers_is_no_difference
    work = [[%w[work], 500, 10], [%w[work load], 300, 20], [%w[work save], 200, 20]]
    a = [[%w[main direct], 5, 10], *work.map { |stack, ns, calls| [%w[main direct] + stack, ns, calls] }]
    b = [[%w[main wrap], 40, 10], [%w[main wrap router], 60, 10],
         *work.map { |stack, ns, calls| [%w[main wrap router] + stack, ns, calls] }]
    result = compare([trace(a)], [trace(b)])
    groups = S::Groups.new(result)
    alone = groups.alone(:new).map { |one| [one.owner, one.cost, one.calls] }
    assert_equal [["router", 60, 10], ["wrap", 40, 10]], alone
    assert_equal [["direct", -5, 10]], groups.alone(:gone).map { |one| [one.owner, one.cost, one.calls] }
    assert_empty groups.more
    work = nodes(result).fetch(%w[main wrap router work])
    assert_equal [1000, 1000], result.totals.map { |totals| totals[work] }
    assert_equal %w[direct main], result.moved.fetch(work).map { |number| result.names[number].name }
    assert_equal :new, result.presence(result.paths.parents[work])
  end

  # Blocks belong to the method around them, and a file's code to the file.
  def test_names_of_what_one_side_runs
    a = [[%w[main], 1, 1]]
    { ["<main>", "block in <main> (app.rb:12)", "block (2 levels) in <main> (app.rb:13)"] => "<main>",
      ["Shop::Cart#total", "block in Shop::Cart#total", "Shop::Cart.of"] => "Shop::Cart",
      ["/opt/ruby/3.1.0/zlib.so"] => "/opt/ruby/3.1.0/zlib.so" }.each do |names, owner|
      rows = names.each_index.map { |at| [["main", *names[0..at]], 20, 1] }
      groups = S::Groups.new(compare([trace(a)], [trace(a + rows)])).alone(:new)
      assert_equal [owner], groups.map(&:owner), names
    end
  end

  # The caller that is called more often is told, and not each of its callees.
  def test_called_more_often
    rows = ->(times) { [[%w[main], 1, 1], [%w[main each], 5, times], [%w[main each load], 90, 2 * times]] }
    result = compare([trace(rows.call(3))], [trace(rows.call(9))])
    more = S::Groups.new(result).more
    assert_equal [["each", [3, 9]]], more.map { |one| [result.method(one.node).name, one.calls] }
  end

  def test_runs_of_a_side_are_averaged_and_their_spread_is_chance
    rows = ->(calls, new) { [[%w[main], 100, 1], [%w[main load], 50, calls], *([[%w[main extra], 9, 1]] if new)] }
    a = [3, 5].map { |calls| trace(rows.call(calls, false)) }
    result = compare(a, [4, 6].map { |calls| trace(rows.call(calls, true)) })
    load, extra = nodes(result).values_at(%w[main load], %w[main extra])
    assert_equal [4.0, 5.0], result.calls.map { |calls| calls[load] }
    assert_equal %i[chance exact], result.verdicts.values_at(load, extra)
    assert_empty S::Groups.new(result).more
    other = compare(a, [7, 8].map { |calls| trace(rows.call(calls, true)) })
    assert_equal ["load"], S::Groups.new(other).more.map { |one| other.method(one.node).name }
  end

  # Equal programs differ beyond noise in at most as many of 60 pairs as 5% may give; a planted path is found.
  def test_samples_that_may_be_chance
    random = Random.new(5)
    weights = Array.new(30) { 1.0 }
    pairs = Array.new(60) { Array.new(2) { [SimulatedProfile.program(random, weights, samples: 2000)] } }
    false_alarms = pairs.count { |a, b| compare([a], [b]).verdicts.include?(:beyond) }
    assert_operator false_alarms, :<=, 8
    planted = SimulatedProfile.segment([[%w[main Caller#c1 Leaf#l1], 1], [%w[main Caller#c1 New#n], 1]] * 600)
    plain = SimulatedProfile.segment([[%w[main Caller#c1 Leaf#l1], 1], [%w[main Caller#c1 Leaf#l1], 1]] * 600)
    result = compare([[plain]], [[planted]])
    node = nodes(result).fetch(%w[main Caller#c1 New#n])
    assert_equal %i[new beyond], [result.presence(node), result.verdicts[node]]
    rare = SimulatedProfile.segment([[%w[main Caller#c1 Leaf#l1], 1]] * 600 + [[%w[main Caller#c1 New#n], 1]] * 6)
    doubtful = compare([[plain]], [[rare]])
    assert_equal :chance, doubtful.verdicts[nodes(doubtful).fetch(%w[main Caller#c1 New#n])]
  end

  def test_nothing_to_compare
    assert_match(/side B has a recording without any call/, compare([trace([[%w[a], 1, 1]])], [trace([])]).reason)
    assert_match(/side A has/, compare([], [trace([[%w[a], 1, 1]])]).reason)
    refute compare([trace([[%w[a], 9, 1]])], [trace([[%w[b], 9, 1]])]).shared
  end

  def test_folded_methods
    rows = [[%w[main call deep deeper], 10, 1], [%w[main call], 5, 1]]
    result = compare([trace(rows)], [trace(rows)], blackbox: ["call"])
    assert_equal [15, 15], result.totals.map { |totals| totals[nodes(result).fetch(%w[main call])] }
    assert_raises(Pitwall::UsageError) { compare([trace(rows)], [trace(rows)], blackbox: ["nope"]) }
  end
end
