# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/page_contents"
require_relative "../support/random_syscalls"
require_relative "../support/syscalls_recording"
require "json"
require "pitwall/analyse"
require "pitwall/analyse/syscalls/path_tree"
require "pitwall/cli"
require "pitwall/record"
require "pitwall/record/syscall_log"
require "pitwall/show"
require "pitwall/views"
require "stringio"

# System calls in a page, parsed without a browser.
class SyscallsPageTest < Minitest::Test
  include Pitwall
  include PageContents

  Tree = Analyse::Syscalls::PathTree

  def whole(nodes, number) = number.zero? ? "" : whole(nodes, nodes[number - 1].parent) + nodes[number - 1].name

  # Each path of the log is in the tree, with its calls. "a/" and "a" are the same path.
  def test_small_trees_hold_every_path
    40.times do |seed|
      random = Random.new(seed)
      rows = Array.new(random.rand(1..60)) do
        parts = Array.new(random.rand(1..5)) { ["a", "b", "c.rb", "\xFF".b, "..", "<b>"][random.rand(6)].b }
        ["#{["/", "", "./", "//"][random.rand(4)]}#{parts.join("/")}#{"/" if random.rand(5).zero?}".b,
         random.rand(1..9), random.rand(100), random.rand(2)]
      end
      expected = Hash.new { |sums, path| sums[path] = [0, 0, 0] }
      rows.each { |path, *sums| sums.each_with_index { |sum, at| expected[clean(path)][at] += sum } }
      nodes = Tree.new(rows).nodes
      found = nodes.each_with_index.reject { |node, _| node.paths.zero? }.to_h do |node, at|
        [clean(whole(nodes, at + 1)), [node.calls, node.ns, node.explained]]
      end
      assert_equal expected, found, "seed #{seed}"
      assert_equal expected.size, nodes.sum(&:paths)
      nodes.each_with_index { |node, at| assert_operator node.parent, :<=, at }
    end
  end

  def clean(path)
    names = path.b.split("/").reject { |name| name.empty? || name == "." }
    "#{"/" if path.start_with?("/")}#{names.join("/")}"
  end

  def test_large_trees_are_bounded_and_lose_no_call
    random = Random.new(7)
    rows = Array.new(20_000) { |at| ["/#{random.rand(40)}/#{random.rand(40)}/#{"x" * random.rand(200)}#{at}",
                                     random.rand(1..50), random.rand(1000), 0] }
    rows << ["/slow", 1, 10_000_000_000, 0] << ["/1/1/often", 1_000_000, 1, 1_000_000]
    [Tree.new(rows), Tree.new(rows, most: 5), Tree.new(rows, most: 1),
     Tree.new(rows, bytes: 0)].zip([6001, 10, 2, 1]) do |tree, most|
      %i[calls ns explained].each_with_index do |name, at|
        assert_equal rows.sum { |row| row[at + 1] }, tree.nodes.sum(&name)
      end
      assert_operator tree.nodes.size, :<=, most
      assert_equal rows.size, tree.nodes.sum(&:paths)
      assert_operator tree.merged, :>, 0
    end
    tree = Tree.new(rows)
    names = tree.nodes.map(&:name)
    assert_includes names, "slow"
    assert_includes names, "often"
    assert_operator tree.nodes.sum { |node| node.name.bytesize }, :<=, 128 << 10
  end

  def test_very_deep_paths_and_none
    nodes = Tree.new([["/#{"a/" * 2000}b", 3, 0, 0]]).nodes
    assert_equal ["/#{"a/" * 2000}b", 1], [nodes.map(&:name).join, nodes.last.paths]
    assert_empty Tree.new([]).nodes
    assert_equal [[:none, 4, 5]], Tree.new([], without: [4, 5, 0]).nodes.map { |node| [node.kind, node.calls, node.ns] }
  end

  # The tree's sums equal the report's, for logs of every format.
  def test_sums_of_a_logs_page_are_the_reports
    12.times do |seed|
      lines = RandomSyscalls.new(seed).lines(300)
      log = Record::SyscallLog.new(StringIO.new("#{lines.join("\n")}\n".b), "x.log")
      report = Analyse::SyscallReport.of(log, patterns: Analyse::SyscallPatterns.new(study: seed.even?))
      part = Show::SyscallsPart.new(report: report, name: "x.log", format: "plain", hints: Views::Hints)
      object, column = unpack(Show::SyscallsPage.new(part).to_s)
      calls = object["syscalls"]
      sums = %w[calls ns].to_h { |name| [name, column.call(calls.dig("paths", name)).sum] }
      assert_equal({ "calls" => report.calls, "ns" => report.ns }, sums)
      assert_equal calls["calls"], calls["by_call"].sum { |row| row["calls"] }
      explained = calls["by_call"].sum { |row| row["explained"] } -
                  report.passes.reject { |pass| pass.pattern.explains? }.sum(&:calls)
      assert_equal explained, column.call(calls.dig("paths", "explained")).sum
      assert_equal report.explained, calls["passes"].sum { |pass| pass["explained"] }
    end
  end

  # Both trees of a recording of two processes. The processes use the same node numbers.
  def test_sums_of_a_recordings_page
    with_segments(SyscallsRecording.bytes + SyscallsRecording.bytes(pid: 4243)) do |segments|
      report = Analyse::SyscallReport.of(*segments)
      part = Show::SyscallsPart.new(report: report, name: "shop", format: "recording",
                                    hints: Views::Hints)
      page = Show::RecordingPage.new(segments, tabs: [], hints: Pitwall::Views::Hints, syscalls: part)
      object, column = unpack(page.to_s)
      calls = object["syscalls"]
      %w[paths stacks].each do |tree|
        assert_equal [report.calls, report.ns], %w[calls ns].map { |name| column.call(calls.dig(tree, name)).sum }, tree
      end
      names = column.call(object.dig("methods", "name")).map { |id| object["strings"][id] }
      methods = column.call(object.dig("nodes", "method"))
      nodes, counts = %w[node calls].map { |name| column.call(calls.dig("stacks", name)) }
      by_method = nodes.zip(counts).map { |node, count| [node.zero? ? nil : names[methods[node - 1]], count] }
      assert_equal [[nil, 2], ["<main>", 2], ["<main>", 2], ["Shop.load", 8], ["Shop.load", 8]],
                   by_method.sort_by { |name, count| [name.to_s, count] }
      assert_includes calls.dig("paths", "name"), "shop.rb"
    end
  end

  # Without stacks a finding's places are files.
  def test_a_recording_without_stacks_has_no_tree_of_them
    bytes = RecordingBuilder.build(mode: "none", collectors: ["syscalls"]) do |segment|
      4.times { |at| segment.syscall "newfstatat", path: "/app/lib#{at}/shop.rb", ns: 5, errno: 2 }
      segment.syscall_totals({ "newfstatat" => [4, 4, 20] })
    end
    with_segments(bytes) do |segments|
      part = Show::SyscallsPart.new(report: Analyse::SyscallReport.of(*segments), name: "shop", format: "recording",
                                    hints: Views::Hints)
      page = Show::RecordingPage.new(segments, tabs: [], hints: Pitwall::Views::Hints, syscalls: part)
      object, column = unpack(page.to_s)
      calls = object["syscalls"]
      assert_nil calls["stacks"]
      assert_equal [[], true], [calls["passes"].flat_map { |pass| pass["lines"] },
                                calls["passes"].any? { |pass| pass["groups"].any? }]
      assert_equal 4, column.call(calls.dig("paths", "calls")).sum
    end
  end

  def test_a_redacted_recording_keeps_its_calls_and_no_path
    with_segments(SyscallsRecording.bytes) do |segments|
      redacted = Analyse::Redaction.new(base: "/app/lib1").call(segments)
      assert_equal segments.map(&:syscall_totals), redacted.map(&:syscall_totals)
      found = redacted.flat_map do |segment|
        segment.enum_for(:each_syscall).map { |call| [call.name, call.path, call.path2, call.cwd] }
      end
      assert_equal %w[close newfstatat openat rename], found.map(&:first).uniq.sort
      assert_includes found.map { |row| row[1] }, "shop.rb"
      refute_match(%r{/app|lib\d}, found.flatten.compact.join("\n").b)
    end
  end
end
