# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/recorded_program"
require_relative "../support/random_calls"

# Exact calls: against an oracle, and where programs do what programs shouldn't.
class TraceTest < Minitest::Test
  include RecordedProgram

  # As the oracle names them.
  def key(segment, node)
    return "root" if node.zero?

    frame = segment.frame(node)
    frame.kind.zero? ? "#{frame.path}:#{frame.first_line}" : frame.name
  end

  # {[caller, callee] => calls} of all that was called under Object#work, and by what began elsewhere.
  def edges(segment)
    wanted = Array.new(segment.parents.size, false)
    (1...segment.parents.size).each do |node|
      parent = segment.parents[node]
      wanted[node] = parent.zero? ? !segment.frame(node).name.start_with?("<main>") : wanted[parent]
      wanted[node] = :work if segment.frame(node).name == "Object#work"
    end
    segment.calls.each_with_object(Hash.new(0)) do |row, sums|
      node = row.node_id
      next if !wanted[node] || row.calls.zero? || wanted[node] == :work && segment.frame(node).name == "Object#work"

      sums[[key(segment, segment.parents[node]), key(segment, node)]] += row.calls
    end
  end

  def calls_of(segment) = segment.calls.each_with_object(Hash.new(0)) { |row, sums| sums[segment.frame(row.node_id).name] += row.calls unless row.node_id.zero? }

  ORACLE = File.join(Checkout::ROOT, "test/oracle/calls.rb")

  def program(seed, before: "", around: "")
    File.write(file("random_calls.rb"), RandomCalls::SOURCE)
    <<~RUBY
      require #{ORACLE.inspect}
      require "fiber"
      load File.expand_path("random_calls.rb")
      GC.disable if #{around.empty?}
      #{before}
      oracle = CallOracle.new
      Pitwall.start(record: "a.pit", mode: "none", collectors: { "trace" => { "bytes" => "1" } })
      oracle.start
      #{around}
      work(#{seed})
      oracle.stop
      Pitwall.stop
      File.binwrite("edges", Marshal.dump(oracle.edges.to_a))
    RUBY
  end

  def expected = Marshal.load(File.binread(file("edges"))).to_h # our own, just written

  def assert_same_as_oracle(seed, **options)
    run_program(program(seed, **options))
    wanted = expected.reject { |(from, to), _| [from, to].any? { |name| name.match?(/TracePoint|CallOracle|program.rb|oracle/) } }
    wanted.reject! { |(from, to), _| to.end_with?(":#{work_line}") || from == "root" && to.match?(/Thread|GC|Kernel/) }
    got = edges(segment)
    assert_equal({}, wanted.reject { |edge, calls| got[edge] == calls }.to_h { |edge, calls| [edge, [calls, got[edge]]] }.first(12).to_h, "seed #{seed}: wanted, got")
    assert_empty got.keys - wanted.keys, "seed #{seed}"
  end

  def work_line = RandomCalls::SOURCE.lines.index { |line| line.start_with?("def work") } + 1

  def test_counts_as_a_trace_point_does
    Integer(ENV.fetch("TEST_SEEDS", 6)).times { |seed| assert_same_as_oracle(seed) }
  end
end
