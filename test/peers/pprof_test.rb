# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require_relative "../support/own_walk"
require "pitwall/record"

# Our export, read by Go's pprof; what it sums up must be what `pitwall report` says.
class PprofTest < Minitest::Test
  include CommandLine

  PROGRAM = <<~'RUBY'
    def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    def burn(until_then) = (nil while clock < until_then)
    class Shop
      def longer = burn(clock + 0.2)
      def shorter = Array.new(2000) { |i| "item #{i}" }.tap { burn(clock + 0.1) }
    end
    worker = Thread.new { Thread.current.name = "worker"; sleep 0.1; Shop.new.shorter }
    $kept = Shop.new.longer, Shop.new.shorter
    GC.start
    worker.join
  RUBY

  def setup
    super
    skip "peer absent: go tool pprof (apt-get install golang-go)" unless go?
    File.write(file("x.rb"), PROGRAM)
  end

  def test_samples
    record("profile")
    report = JSON.parse(pitwall("report", "x.pit", "--format", "json").out)
    %w[wall cpu].each { |weight| assert_same(report(weight), top(weight), 1_000) }
    assert_equal report["threads"].sum { |thread| thread["captures"] }, top("samples").values.sum(&:first)
    report["threads"].each { |thread| assert_in_delta thread["wall"], focused("thread", thread["name"]), 1_000, thread["name"] }
    states = report["threads"].map { |thread| thread["states"] }.reduce { |all, one| all.merge(one) { |_, a, b| a + b } }
    states.each { |state, wall| assert_in_delta wall, focused("state", state), 1_000, state }
    raw = go("-raw").lines(chomp: true)
    assert_includes raw, "PeriodType: wall nanoseconds"
    assert_includes raw, "Period: 1000000"
    assert_match(/^Time: 20\d\d-/, raw.join("\n"))
    assert(raw.any? { |line| line.match?(/\A\s*\d+: 0x0 M=1 Shop#longer \S*x\.rb:4/) }, raw.grep(/Shop/).join("\n"))
    assert(raw.any? { |line| line.match?(/\A1: 0x0.*x\.rb +\[FN\]\[FL\]\[LN\]/) })
  end

  def test_objects
    record("allocations", "--stacks")
    %w[objects bytes].each { |weight| assert_same(report(weight), top("alloc_#{weight == "bytes" ? "space" : weight}"), 1) }
    assert_in_delta retained("retained"), top("inuse_objects").values.sum(&:first), 100
    assert_in_delta retained("retained_bytes"), top("inuse_space").values.sum(&:first), 4096
    assert_operator top("inuse_space").fetch("Shop#shorter")[1], :>=, 2000 * 8
    assert_match(/^PeriodType: space bytes$/, go("-raw"))
    assert_operator top("alloc_objects", "-tagfocus=class=^String$").fetch("block in Shop#shorter", [0]).first, :>=, 4000
  end

  def test_calls
    record("trace")
    %w[wall cpu calls].each { |weight| assert_same(report(weight), top(weight), 1) }
  end

  def test_native_frames
    skip OwnWalk.refusal if OwnWalk.refusal
    record("profile", "--native")
    assert pitwall("export", "x.pit", "--native", "--to", "pprof", "--out", "x.pb.gz").status.success?
    raw = go("-raw")
    objects = Pitwall::Record.read(file("x.pit")).segments.flat_map(&:shared_objects)
    refute_empty objects
    mappings = raw[/^Mappings\n(.*)/m, 1].lines(chomp: true)
    listed = mappings.to_h { |line| line.match(/\A\d+: 0x0\S* (\S*) ?(\h*) \[FN\]/).captures }
    used = listed.keys.drop(1)
    refute_empty used
    assert_equal objects.to_h { |object| [object.path, object.build_id] }.slice(*used), listed.slice(*used)
    # A function of MRI is in libruby, or in the executable where Ruby has no such library.
    mapping = raw[/^ *\d+: 0x0 M=(\d+) vm_exec_core /, 1].to_i
    assert_match(/\A(?:libruby|ruby)/, File.basename(listed.keys[mapping - 1]))
    assert_operator top("wall").fetch("vm_exec_core")[1], :>, 0
  end

  SERVER = <<~'RUBY'
    require "pitwall"
    def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    def burn(seconds) = (limit = clock + seconds; nil while clock < limit)
    def index = burn(0.1)
    def show = burn(0.2)
    Pitwall.continuous(dir: "d", rate: 1000)
    4.times { |i| Pitwall.request(route: "orders#index", shard: i % 2) { index } }
    2.times { |i| Pitwall.request(route: "orders#show", shard: i) { show } }
    burn(0.1)
  RUBY

  # What a server records all the time, by what it worked for: pprof's own selection against `pitwall report --label`.
  def test_labels_of_continuous_recording
    File.write(file("server.rb"), SERVER)
    result = capture({}, RUBY, "-I#{Checkout::ROOT}/lib", "server.rb")
    assert result.status.success?, result.err
    result = pitwall("export", *Dir[file("d/*.pit")], "--to", "pprof", "--out", "x.pb.gz")
    assert result.status.success?, result.err
    assert_match(/^ *route: .*orders#index/m, go("-tags", "-sample_index=wall"))
    routes = { "orders#index" => "Object#index", "orders#show" => "Object#show" }
    routes.each do |route, method|
      expected = labelled("route=#{route}")
      assert_in_delta expected, focused("route", route), 1_000, route
      assert_in_delta 0.4e9, expected, 0.2e9, route
      found = top("wall", "-tagfocus=route=^#{route}$")
      assert_in_delta expected, found.fetch(method)[1], expected * 0.2
      refute_includes found, (routes.values - [method]).first
    end
    assert_in_delta labelled("route=orders#index", "shard=1"), top("wall", "-tagfocus=route=^orders#index$", "-tagignore=shard=^0$").values.sum(&:first), 1_000
    result = pitwall("export", *Dir[file("d/*.pit")], "--to", "pprof", "--out", "x.pb.gz", "--label", "route=orders#show")
    assert result.status.success?, result.err
    assert_in_delta labelled("route=orders#show"), top("wall").values.sum(&:first), 1_000
  end

  private

  # Wall time, as Pitwall itself selects.
  def labelled(*labels) = JSON.parse(pitwall("report", *Dir[file("d/*.pit")], *labels.flat_map { |label| ["--label", label] }, "--format", "json").out).fetch("total")

  def retained(counter) = JSON.parse(pitwall("report", "x.pit", "--view", "allocations", "--format", "json").out).fetch("sites").sum { |site| site.fetch(counter) }

  # Wall time of what has a label.
  def focused(key, value) = top("wall", "-tagfocus=#{key}=^#{value}$").values.sum(&:first)

  def go? = ENV["PATH"].split(":").any? { |dir| File.executable?(File.join(dir, "go")) }

  def record(verb, *options)
    result = pitwall(verb, "--quiet", "--record", "x.pit", *options, "--", RUBY, "x.rb")
    assert result.status.success?, result.err
    result = pitwall("export", "x.pit", "--to", "pprof", "--out", "x.pb.gz")
    assert result.status.success?, result.err
  end

  def go(*options)
    result = capture({ "HOME" => @dir, "PPROF_TMPDIR" => @dir, "GOFLAGS" => nil }, "go", "tool", "pprof", *options, "x.pb.gz")
    assert result.status.success?, result.err
    result.out
  end

  # {name => [self, total]} as pprof adds it up, in the smallest unit.
  def top(type, *options)
    lines = go("-top", "-nodecount=100000", "-nodefraction=0", "-edgefraction=0", "-unit=#{unit(type)}", "-sample_index=#{type}", *options).lines(chomp: true)
    lines.drop_while { |line| !line.match?(/^\s+flat/) }.drop(1).to_h do |line|
      flat, _, _, cum, _, name = line.strip.split(/\s+/, 6)
      [name, [flat.to_i, cum.to_i]]
    end
  end

  def unit(type) = { "wall" => "ns", "cpu" => "ns", "alloc_space" => "B", "inuse_space" => "B" }.fetch(type, "count")

  def report(weight)
    rows = JSON.parse(pitwall("report", "x.pit", "--format", "json", "--view", "flat", "--weight", weight).out).fetch("methods")
    rows.group_by { |row| row["name"] }.transform_values { |same| [same.sum { |row| row["self"] }, same.sum { |row| row["total"] }, same.size] }
  end

  def assert_same(expected, got, delta)
    refute_empty got
    expected.each do |name, (own, total, same)|
      assert_in_delta own, got.fetch(name, [0])[0], delta, "self of #{name}"
      assert_in_delta total, got.fetch(name, [0, 0])[1], delta, "total of #{name}" if same == 1
    end
    assert_empty got.keys - expected.keys
  end
end
