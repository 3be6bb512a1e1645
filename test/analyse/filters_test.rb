# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_tree"
require "fileutils"
require "pitwall/analyse"
require "tmpdir"

# Filters against a slow oracle, on 10,000 random recordings.
class FiltersTest < Minitest::Test
  TREES = 10_000
  PARTS = 4
  # What `only` keeps → frame's number in RandomTree::FRAMES
  ONLY = { "app" => [0, 1, 2], "gems" => [3, 4], "stdlib" => [5, 6], "native" => [8], "rack" => [3] }.freeze
  Analyse = Pitwall::Analyse

  def setup
    @folder = Dir.mktmpdir
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  PARTS.times do |part|
    define_method(:"test_filters_equal_the_oracle_part_#{part}") do
      (TREES * part / PARTS...TREES * (part + 1) / PARTS).each { |seed| check(seed) }
    end
  end

  def test_the_parts_of_a_time_add_up_to_the_whole
    500.times do |seed|
      tree = RandomTree.new(seed)
      segments = tree.segments(@folder)
      cut = rand_of(seed).rand(tree.length + 2) * RandomTree::UNIT_NS + seed % 2 * 400
      parts = [Analyse::TimeRange.new(0, cut), Analyse::TimeRange.new(cut)].map { |range| range.call(segments) }
      %i[wall cpu captures].each do |weight|
        whole, *sums = [segments, *parts].map { |some| selfs(some, weight) }
        both = sums.reduce { |one, other| one.merge(other) { |_, a, b| a + b } }
        assert_equal whole, both, "seed #{seed}, #{weight}"
      end
    end
  end

  def test_rows_of_a_time_are_its_sums
    200.times do |seed|
      tree = RandomTree.new(seed)
      random = rand_of(seed)
      from = random.rand(20) * RandomTree::UNIT_NS
      kept = Analyse::TimeRange.new(from, from + random.rand(1..20) * RandomTree::UNIT_NS).call(tree.segments(@folder))
      kept.each do |segment|
        sums = Hash.new(0)
        segment.each_rows { |rows| rows.each { |thread, state, node, wall, *| sums[[thread, state, node]] += wall } }
        segment.open_rows.each { |thread, state, node, wall, *| sums[[thread, state, node]] += wall }
        told = Hash.new(0)
        segment.tallies.each do |tally|
          tally.each { |node, wall, *| told[[tally.thread_id, tally.state, node]] += wall }
        end
        assert_equal told, sums, "seed #{seed}"
      end
    end
  end

  private

  def rand_of(seed) = Random.new(seed + 1_000_000)

  def check(seed)
    tree = RandomTree.new(seed)
    random = rand_of(seed)
    given = choose(random, tree)
    expected = oracle(tree, **given)
    mine = given[:only] == "app" && random.rand(2).zero? # --only-mine, which is a filter of its own
    only = given[:only] unless mine
    filters = Analyse::Filters.new(**given.slice(:focus, :hide), only: only, time: range(given[:time]))
    segments = tree.segments(@folder)
    segments = Analyse::NativeFrames.fold(segments) if given[:folded]
    kept = filters.samples(segments)
    weight = %i[wall cpu captures][seed % 3]
    selection = Analyse::Selection.new
    query = Analyse::Report::Query.new(weight: weight, selection: selection, filters: filters, threshold: 0.0,
                                       blackbox: given[:blackbox], gc: given[:gc], only_mine: mine)
    report = Analyse::Report.new(kept, query)
    samples = Oracle::Filters.weighed(expected, weight)
    unit = weight == :captures ? 1 : RandomTree::UNIT_NS
    whole = Oracle.total(Oracle::Filters.weighed(tree.rows, weight)) * unit
    said = "seed #{seed}: #{given}"
    assert_equal Oracle.total(samples) * unit, report.total, said
    assert_equal whole, report.whole, said
    assert_equal scaled(Oracle.self_by_method(samples), unit), table(report, &:own), said
    assert_equal scaled(Oracle.total_by_method(samples), unit), table(report, &:total), said
  end

  def choose(random, tree)
    folded = random.rand(2).zero?
    rows = folded ? Oracle::Filters.native(tree.rows) : tree.rows
    names = rows.flat_map(&:stack).map(&:first).uniq
    some = ->(most) { random.rand(2).zero? ? [] : names.sample(random.rand(1..most), random: random) }
    whose = ONLY.select { |_, frames| (RandomTree::NAMES.values_at(*frames) & names).any? }.keys
    from = random.rand(tree.length + 1)
    to = random.rand(3).zero? ? nil : from + random.rand(1..tree.length + 1)
    { time: ([from, to] if random.rand(2).zero?), focus: some.call(2), hide: some.call(3),
      only: (whose.sample(random: random) if random.rand(3).zero?), blackbox: some.call(2), folded: folded,
      gc: %i[happened apart caller].sample(random: random) }
  end

  def range(time)
    return unless time

    from, to = time
    Analyse::TimeRange.new(from * RandomTree::UNIT_NS, to && to * RandomTree::UNIT_NS)
  end

  def oracle(tree, time:, focus:, hide:, only:, blackbox:, folded:, gc:)
    rows = folded ? Oracle::Filters.native(tree.rows) : tree.rows
    rows = Oracle::Filters.time(rows, tree.starts, *time) if time
    rows = Oracle::Filters.focus(rows, focus) if focus.any?
    rows = Oracle::Filters.hide(rows, hide) if hide.any?
    if only
      names = RandomTree::NAMES.values_at(*ONLY.fetch(only))
      rows = Oracle::Filters.only(rows) { |frame| names.include?(frame[0]) }
    end
    Oracle::Filters.blackbox(Oracle::Filters.gc(rows, gc), blackbox)
  end

  def scaled(sums, unit)
    sums.reject { |_, weight| weight.zero? }.transform_values { |weight| weight * unit }
  end

  def table(report)
    report.flat.to_h { |row| [row.method.to_a, yield(row)] }.reject { |_, weight| weight.zero? }
  end

  def selfs(segments, weight)
    tree = Analyse::CallTreeBuilder.build(segments, weights: [weight])
    tree.self_by_method(weight).each_with_index.to_h { |own, number| [tree.methods[number].to_a, own] }
  end
end
