# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require_relative "../oracle/samples"
require "pitwall/analyse"

# All sums over stacks are compared with the oracles, on random recordings.
class CallTreeTest < Minitest::Test
  # Ruby 3.1 has a dummy frame below the program.
  def test_the_dummy_at_the_root_counts_as_the_program
    dummy = ["<main>", "a.rb", 0, 0]
    main = ["<main>", "/app/a.rb", 0, 3]
    bytes = RecordingBuilder.build do |segment|
      segment.row stack: [dummy], wall: 1
      segment.row stack: [dummy, main], wall: 10
      segment.row stack: [dummy, main, ["Object#work", "/app/a.rb", 1, 2]], wall: 100
      segment.row stack: [dummy, ["at_exit", "/app/b.rb", 1, 2]], wall: 1000
    end
    report = Pitwall::Analyse::Report.new(RandomRecording.read(bytes).segments,
                                          Pitwall::Analyse::Report::Query.new(threshold: 0))
    rows = report.top_down.rows.map { |row| [row.depth, row.method.name, row.method.path, row.total / 1000] }
    assert_equal [[0, "<main>", "/app/a.rb", 1111], [1, "at_exit", "/app/b.rb", 1000],
                  [1, "Object#work", "/app/a.rb", 100]], rows
    assert_equal 1_111_000, report.total
  end

  include Pitwall::Analyse

  SEEDS = (1..25).freeze
  WEIGHTS = %i[wall cpu captures].freeze

  def test_flat_equals_the_oracle_and_adds_up
    each_tree do |tree, weight, samples|
      rows = Flat.rows(tree, weight)
      own = Oracle.self_by_method(samples)
      total = Oracle.total_by_method(samples)
      assert_equal positive(total), rows.to_h { |row| [key(row.method), row.total] }
      assert_equal positive(own), positive(rows.to_h { |row| [key(row.method), row.own] })
      assert_equal Oracle.total(samples), rows.sum(&:own)
      assert_equal Oracle.total(samples), tree.total(weight)
      assert_equal rows.map(&:own).sort.reverse, rows.map(&:own)
    end
  end

  def test_callers_equal_the_oracle_and_add_up_to_the_total
    each_tree do |tree, weight, samples|
      names(samples).each do |name|
        numbers = MethodMatch.find(tree.methods, name)
        result = Neighbours.callers(tree, weight, numbers)
        assert_equal positive(Oracle.callers(samples, name)),
                     result.rows.to_h { |row| [row.method && key(row.method), row.total] }
        assert_equal result.total, result.rows.sum(&:total)
      end
    end
  end

  def test_callees_equal_the_oracle_and_add_up_with_self
    each_tree do |tree, weight, samples|
      names(samples).each do |name|
        numbers = MethodMatch.find(tree.methods, name)
        result = Neighbours.callees(tree, weight, numbers)
        assert_equal positive(Oracle.callees(samples, name)), result.rows.to_h { |row| [key(row.method), row.total] }
        assert_equal result.total, result.own + result.rows.sum(&:total)
      end
    end
  end

  def test_outlines_equal_the_oracle
    each_tree do |tree, weight, samples|
      assert_equal positive(Oracle.top_down(samples)), paths(Outline.top_down(tree, weight))
      assert_equal positive(Oracle.bottom_up(samples)), paths(Outline.bottom_up(tree, weight))
    end
  end

  # The rows shown and the weight hidden below a row add up to the row.
  def test_a_threshold_hides_and_counts
    each_tree do |tree, weight, _|
      threshold = tree.total(weight) / 10
      result = Outline.top_down(tree, weight, threshold: threshold)
      assert_equal tree.total(weight), result.rows.sum(&:own) + result.rows.sum(&:hidden) + result.hidden
      result.rows.each { |row| assert_operator row.total, :>=, threshold }
      roots = Outline.bottom_up(tree, weight, threshold: threshold)
      assert_equal tree.total(weight), roots.rows.select { |row| row.depth.zero? }.sum(&:total) + roots.hidden
    end
  end

  def test_blackbox_equals_the_oracle
    each_tree do |tree, weight, samples|
      boxed = names(samples).first(2)
      folded = Folding.blackbox(tree, boxed.flat_map { |name| MethodMatch.find(tree.methods, name) })
      cut = Oracle.blackbox(samples, boxed)
      assert_equal positive(Oracle.top_down(cut)), paths(Outline.top_down(folded, weight))
      assert_equal positive(Oracle.total_by_method(cut)),
                   Flat.rows(folded, weight).to_h { |row| [key(row.method), row.total] }
    end
  end

  def test_lines_equal_the_oracle
    each_tree do |tree, weight, samples|
      own, all = Oracle.lines(samples)
      rows = Lines.rows(tree, weight)
      assert_equal positive(own), positive(rows.to_h { |row| [[row.path, row.line], row.own] })
      assert_equal positive(all), rows.reject { |row| row.line.zero? }.to_h { |row| [[row.path, row.line], row.total] }
    end
  end

  def test_garbage_collection_moves_and_none_is_lost
    each_tree do |tree, weight, samples|
      # The oracle's folding: stacks without garbage collection at their ends.
      charged = samples.map { |stack, sum| [stack.reverse.drop_while { |frame| frame[4] == 2 }.reverse, sum] }
                       .zip(samples).map { |(left, sum), (stack, _)| [left.empty? ? stack : left, sum] }
      assert_equal positive(Oracle.self_by_method(charged)),
                   positive(Flat.rows(Folding.gc_to_caller(tree), weight).to_h { |row| [key(row.method), row.own] })

      apart = Flat.rows(Folding.gc_apart(tree), weight)
      collecting = samples.select { |stack, _| stack.last[4] == 2 }
      assert_equal Oracle.total(collecting), apart.select { |row| row.method.gc? }.sum(&:own)
      assert_equal Oracle.total(samples), apart.sum(&:own)
    end
  end

  def test_a_selection_is_the_tree_of_its_samples
    SEEDS.first(10).each do |seed|
      recording = RandomRecording.new(seed)
      segments = recording.read.segments
      {
        Selection.new(thread: "t2") => ->(sample) { sample.thread == 2 },
        Selection.new(thread: "3") => ->(sample) { sample.thread == 3 },
        Selection.new(process: 101) => ->(sample) { sample.segment == 1 },
        Selection.new(state: 2) => ->(sample) { sample.state == 2 }
      }.each do |selection, test|
        tree = CallTreeBuilder.build(segments, selection)
        samples = recording.weighed(:wall, recording.samples.select(&test))
        assert_equal positive(Oracle.self_by_method(samples)),
                     positive(Flat.rows(tree, :wall).to_h { |row| [key(row.method), row.own] })
      end
    end
  end

  def test_threads_and_states_add_up
    recording = RandomRecording.new(3)
    rows = Threads.rows(recording.read.segments)
    assert_equal Oracle.total(recording.weighed(:wall)), rows.sum(&:wall)
    assert_equal Oracle.total(recording.weighed(:cpu)), rows.sum(&:cpu)
    rows.each { |row| assert_equal row.wall, row.states.values.sum }
    assert_equal ["t1", "t2", ""].sort, rows.map(&:name).uniq.sort
  end

  # The stack is deeper than any program can make it.
  def test_depth_has_no_limit
    stack = Array.new(30_000) { |i| ["f#{i % 3}", "/a.rb", i % 3, 1] }
    bytes = RecordingBuilder.build { |segment| segment.row(stack: stack, wall: 7) }
    tree = CallTreeBuilder.build(RandomRecording.read(bytes).segments)
    assert_equal 30_000, Outline.top_down(tree, :wall).rows.size
    assert_equal 30_000, Outline.bottom_up(tree, :wall).rows.size
    assert_equal [7000, 7000, 7000], Flat.rows(tree, :wall).map(&:total)
  end

  def test_rows_without_a_stack_are_counted_apart
    bytes = RecordingBuilder.build do |segment|
      segment.row(stack: [], wall: 3)
      segment.row(stack: [["a"]], wall: 4)
    end
    tree = CallTreeBuilder.build(RandomRecording.read(bytes).segments)
    assert_equal({ "a" => 4000, "(no stack)" => 3000 },
                 Flat.rows(tree, :wall).to_h { |row| [row.method.name, row.own] })
  end

  def test_names_are_found_as_people_type_them
    names = ["(root)", "Shop::Cart#sum", "block in Shop::Cart#sum", "Cart#sum", "Shop.total", "Integer#+"]
    methods = names.map { |name| MethodInfo.new(name, "/gems/x/#{name.size}.rb", 1, 0) }
    assert_equal [3], MethodMatch.find(methods, "Cart#sum")
    assert_equal [1], MethodMatch.find(methods, "Shop::Cart#sum")
    assert_equal [4], MethodMatch.find(methods, "total")
    assert_equal [1, 3], MethodMatch.find(methods, "#sum")
    assert_equal [2], MethodMatch.find(methods, "block in Shop::Cart#sum")
    assert_equal [5], MethodMatch.find(methods, "+")
    assert_equal [1, 2, 3, 4, 5], MethodMatch.find(methods, "gems/x")
    assert_match(/no method "Carr#sum".*Cart#sum/,
                 assert_raises(Pitwall::UsageError) { MethodMatch.find(methods, "Carr#sum") }.message)
  end

  private

  def each_tree
    SEEDS.each do |seed|
      recording = RandomRecording.new(seed)
      tree = CallTreeBuilder.build(recording.read.segments)
      WEIGHTS.each { |weight| yield tree, weight, recording.weighed(weight) }
    end
  end

  def key(method) = [method.name, method.path, method.line, method.kind]
  def positive(sums) = sums.reject { |_, sum| sum.zero? }
  def names(samples) = samples.flat_map(&:first).map(&:first).uniq.sort.first(4)
  def paths(result)
    paths = []
    result.rows.to_h do |row|
      paths << (row.parent ? paths[row.parent] + [key(row.method)] : [key(row.method)])
      [paths.last, row.total]
    end
  end
end
