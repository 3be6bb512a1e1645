# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../oracle/graph"
require_relative "../support/random_recording"
require_relative "../support/traced_recording"
require "pitwall/analyse"

# The call graph against stacks that are written out, on random trees with much recursion.
class GraphTest < Minitest::Test
  include Pitwall::Analyse

  TREES = 10_000

  def test_it_equals_the_oracle_on_random_trees
    TREES.times do |seed|
      tree, samples = random_tree(Random.new(seed))
      rows = Graph.new(tree, :wall).rows
      expected = GraphOracle.sums(samples)
      assert_equal expected.keys.sort, rows.map { |row| row.method.name }.sort, "seed #{seed}"
      rows.each { |row| assert_equal expected.fetch(row.method.name).to_a, sums(row), "seed #{seed}" }
    end
  end

  def test_a_group_equals_the_oracle_of_one_name
    1000.times do |seed|
      tree, samples = random_tree(Random.new(seed))
      group = [1, 2].select { |number| number < tree.methods.size }
      names = tree.methods.values_at(*group).map(&:name)
      merged = samples.map do |stack, weight|
        [stack.map { |name, line| [names.include?(name) ? names[0] : name, line] }, weight]
      end
      expected = GraphOracle.sums(merged)
      rows = Graph.new(tree, :wall, group: group).rows
      assert_equal expected.transform_values(&:to_a), rows.to_h { |row| [row.method.name, sums(row)] }, "seed #{seed}"
    end
  end

  def test_chains_of_callers_equal_the_oracle
    2000.times do |seed|
      tree, samples = random_tree(Random.new(seed))
      result = Outline.callers(tree, :wall, [1, 2].first(tree.methods.size - 1))
      expected = GraphOracle.chains(samples.reject { |_, weight| weight.zero? }, %w[m1 m2])
      paths = []
      result.rows.each { |row| paths << [*(row.parent && paths[row.parent]), row.method.name] }
      assert_equal expected, paths.zip(result.rows.map(&:total)).to_h, "seed #{seed}"
    end
  end

  def test_the_heaviest_rows_are_the_first_of_all
    200.times do |seed|
      tree, = random_tree(Random.new(seed))
      graph = Graph.new(tree, :wall)
      [0, 1, 3, graph.size + 1].each { |count| assert_equal graph.rows.first(count), graph.first(count) }
      assert_equal graph.rows.size, graph.size
    end
  end

  # A symbol's callers add up to its total, and its self weight and callees do, too.
  def test_it_adds_up
    500.times do |seed|
      tree, = random_tree(Random.new(seed), most: 200)
      Graph.new(tree, :wall).rows.each do |row|
        assert_equal row.total, row.callers.sum(&:total)
        assert_equal row.total, row.own + row.callees.sum(&:total)
        assert_equal row.total, tree.total_by_method(:wall)[tree.methods.index(row.method)]
      end
    end
  end

  def test_least_hides_symbols_and_counts_them
    tree, = random_tree(Random.new(1), most: 200)
    all = Graph.new(tree, :wall).rows
    least = all[all.size / 2].total
    graph = Graph.new(tree, :wall, least: least)
    assert_equal all.select { |row| row.total >= least }, graph.rows
    assert_equal all.size - graph.rows.size, graph.hidden
    only = Graph.new(tree, :wall) { |method| method.name == all.first.method.name }
    assert_equal [[all.first], 0], [only.rows, only.hidden]
  end

  # The first source's figures: rb_feature_p is in three places of the profile, and its inclusive total is their sum.
  def test_the_total_over_all_places
    tree = tree_of(%w[require rb_feature_p rb_string_value_ptr] => 2838, %w[require rb_feature_p] => 2741,
                   %w[require rb_feature_p loaded_feature_path] => 2100, %w[require] => 2321)
    row = Graph.new(tree, :wall).rows.find { |one| one.method.name == "rb_feature_p" }
    assert_equal [7679, 2741], [row.total, row.own]
    assert_equal [["rb_string_value_ptr", 2838], ["loaded_feature_path", 2100]],
                 row.callees.map { |edge| [edge.method.name, edge.total] }
    assert_equal [["require", 7679]], row.callers.map { |edge| [edge.method.name, edge.total] }
  end

  # Its garbage collection: a function is folded into itself, and its chain of callers is read.
  def test_a_blackbox_and_its_chain
    above = %w[rb_require_safe rb_feature_p rb_file_expand_path str_new vm_xmalloc garbage_collect]
    tree = tree_of([*above, "gc_mark"] => 5, [*above, "st_foreach", "mark_entry"] => 3,
                   %w[rb_require_safe garbage_collect gc_mark] => 2)
    number = tree.methods.index { |method| method.name == "garbage_collect" }
    folded = Folding.blackbox(tree, [number])
    row = Graph.new(folded, :wall).rows.find { |one| one.method.name == "garbage_collect" }
    assert_equal [10, 10, []], [row.own, row.total, row.callees]
    chain = Outline.callers(folded, :wall, [number])
    assert_equal [["garbage_collect", 10], ["vm_xmalloc", 8], ["str_new", 8], ["rb_file_expand_path", 8],
                  ["rb_feature_p", 8], ["rb_require_safe", 8], ["rb_require_safe", 2]],
                 chain.rows.map { |one| [one.method.name, one.total] }
  end

  def test_traced_calls_are_counted_by_caller_and_callee
    segments = RandomRecording.read(TracedRecording.bytes).segments
    tree = CallTreeBuilder.build(segments, weights: CallTreeBuilder::CALL_WEIGHTS)
    edges = CallEdges.new(tree)
    rows = Graph.new(tree, :wall, edges: edges).rows
    refute_empty rows
    rows.each do |row|
      number = [tree.methods.index(row.method)]
      assert_equal edges.callers(number).values.sum, row.calls
      assert_equal counted(edges.callers(number)), by_number(tree, row.callers)
      assert_equal counted(edges.callees(number)), by_number(tree, row.callees)
    end
  end

  def test_depth_has_no_limit
    methods = [CallTreeBuilder::ROOT, method("a"), method("b")]
    depth = 30_000
    tree = CallTree.new(methods: methods, parents: [0, *0...depth], lines: [0] * (depth + 1),
                        node_methods: [0, *Array.new(depth) { |at| 1 + (at % 2) }], selfs: { wall: [0] * depth + [7] })
    assert_equal [["a", 7], ["b", 7]], Graph.new(tree, :wall).rows.map { |row| [row.method.name, row.total] }
  end

  def test_objects_are_found_as_people_type_them
    paths = %w[/usr/lib/libruby-3.1.so.3.1.2 /lib/libc.so.6 /usr/bin/ruby3.1 [kernel] /opt/libz.so /opt/libz3.so]
    methods = [method("Shop#sum"), *paths.map { |path| MethodInfo.new("f", path, 0, 3) }]
    { "libruby.so" => 0, "libruby" => 0, "libruby-3.1.so" => 0, "libruby-3.1.so.3.1" => 0, "libc" => 1, "ruby" => 2,
      "/lib/libc.so.6" => 1, "kernel" => 3, "[kernel]" => 3, "libz.so" => 4, "libz3" => 5 }.each do |name, at|
      assert_equal [paths[at]], ObjectMatch.find(methods, name), name
    end
    error = assert_raises(Pitwall::UsageError) { ObjectMatch.find(methods, "libxml2.so") }
    assert_match(/no object "libxml2.so" in the recording: it has libruby-3.1.so.3.1.2, libc.so.6/, error.message)
    error = assert_raises(Pitwall::UsageError) { ObjectMatch.find(methods.first(1), "libc") }
    assert_match(/no native functions/, error.message)
  end

  private

  def method(name) = MethodInfo.new(name, "", 0, 3)

  # Node 0, then nodes below any earlier one. Few methods, so that much is recursive.
  # @return [Array(CallTree, Array)] the tree, and its samples as the oracle takes them
  def random_tree(random, most: 25)
    size = random.rand(1..most)
    count = random.rand(1..5)
    parents = [0, *(1..size).map { |node| random.rand([node - 6, 0].max...node) }]
    node_methods = [0] + Array.new(size) { random.rand(1..count) }
    lines = [0] + Array.new(size) { random.rand(3) }
    selfs = [0] + Array.new(size) { random.rand(3).zero? ? random.rand(1..9) : 0 }
    methods = [CallTreeBuilder::ROOT, *(1..count).map { |number| method("m#{number}") }]
    tree = CallTree.new(methods: methods, parents: parents, node_methods: node_methods, lines: lines,
                        selfs: { wall: selfs })
    [tree, (1..size).map { |node| [stack(tree, node), selfs[node]] }]
  end

  def stack(tree, node)
    stack = []
    until node.zero?
      stack.unshift([tree.methods[tree.node_methods[node]].name, tree.lines[node]])
      node = tree.parents[node]
    end
    stack
  end

  # {stack of names => weight} as a tree.
  def tree_of(samples)
    names = samples.keys.flatten.uniq
    nodes = { [] => 0 }
    parents, node_methods, selfs = [0], [0], [0]
    samples.each do |stack, weight|
      (1..stack.size).each do |size|
        nodes[stack.first(size)] ||= begin
          parents << nodes.fetch(stack.first(size - 1))
          node_methods << names.index(stack[size - 1]) + 1
          selfs << 0
          parents.size - 1
        end
      end
      selfs[nodes.fetch(stack)] += weight
    end
    CallTree.new(methods: [CallTreeBuilder::ROOT, *names.map { |name| method(name) }], parents: parents,
                 node_methods: node_methods, lines: [0] * parents.size, selfs: { wall: selfs })
  end

  def sums(row)
    [row.own, row.total, *[row.callers, row.callees].map do |edges|
      edges.each { |edge| assert_equal edge.total, edge.places.sum(&:total) }
      edges.flat_map { |edge| edge.places.map { |place| [[edge.method&.name, place.line], place.total] } }.to_h
    end]
  end

  def counted(calls) = calls.select { |_, count| count.positive? }

  def by_number(tree, edges)
    counted(edges.to_h { |edge| [edge.method && tree.methods.index(edge.method), edge.calls] })
  end
end
