# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/recorded_program"
require_relative "../support/random_calls"
require "pitwall/analyse"

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
      File.write("edges", oracle.edges.map { |(from, to), calls| [from, to, calls].join("\t") }.join("\n"))
    RUBY
  end

  def expected
    File.readlines(file("edges"), chomp: true).to_h { |line| line.split("\t").then { |from, to, calls| [[from, to], calls.to_i] } }
  end

  def assert_same_as_oracle(seed, **options)
    run_program(program(seed, **options))
    wanted = expected.reject { |(from, to), _| [from, to].any? { |name| name.match?(/TracePoint|CallOracle|program.rb|oracle/) } }
    wanted.reject! { |(from, to), _| to.end_with?("random_calls.rb:#{work_line}") || from == "root" && to.match?(/internal:gc|GC/) || [from, to].any? { |name| name.match?(/Thread#(name|to_s)/) } } # Pitwall asks for names
    got = edges(segment)
    assert_equal({}, wanted.reject { |edge, calls| got[edge] == calls }.to_h { |edge, calls| [edge, [calls, got[edge]]] }.first(12).to_h, "seed #{seed}: wanted, got")
    assert_empty got.keys - wanted.keys, "seed #{seed}"
  end

  def work_line = RandomCalls::SOURCE.lines.index { |line| line.start_with?("def work") } + 1

  def test_counts_as_a_trace_point_does
    Integer(ENV.fetch("TEST_SEEDS", 6)).times { |seed| assert_same_as_oracle(seed) }
  end

  def test_counts_while_garbage_is_collected_and_moved
    assert_same_as_oracle(101, around: "GC.start")
    return unless GC.respond_to?(:auto_compact=)

    assert_same_as_oracle(102, before: "GC.auto_compact = true", around: "GC.compact")
  end

  def trace(source, options: "", before: "", **given)
    run_program(<<~RUBY, **given)
      #{before}
      def traced = Pitwall.trace(record: "a.pit", #{options}) { yield }
      #{source}
    RUBY
  end

  # Every record must be sound, whatever was traced.
  def assert_sound(segment)
    segment.calls.each do |row|
      assert_operator row.wall, :<=, segment.stat("elapsed_ns") + 1_000_000, segment.frame(row.node_id).name
      assert_operator row.cpu, :<=, segment.stat("process_cpu_ns") + 1_000_000, segment.frame(row.node_id).name
    end
    walls = segment.calls.group_by(&:thread_id).transform_values { |rows| rows.sum(&:wall) }
    walls.each_value { |wall| assert_operator wall, :<=, segment.stat("elapsed_ns") * 1.05 + 2_000_000 }
    assert_equal "stop", segment.tail&.fetch("reason")
    assert_empty segment.frames.values.map(&:name).grep(/unresolved|unnamed|unreadable/)
  end

  def test_under_stress
    trace(<<~'RUBY')
      def leaf(n) = "x" * n
      def many = 30.times { |i| leaf(i); [i].map { |x| x.to_s }; begin; raise "a"; rescue; end }
      GC.stress = true
      traced { many }
      GC.stress = false
    RUBY
    assert_sound(segment)
    calls = calls_of(segment)
    assert_equal [1, 30], calls.values_at("Object#many", "Object#leaf")
    assert_equal 30, calls["Array#map"]
    names = segment.frames.values.map(&:name)
    assert_includes names, "(marking)"
  end

  def test_objects_are_those_that_ruby_counts
    out = trace(<<~'RUBY', options: "bytes: true")
      def objects(n)
        n.times { Object.allocate }
      end
      def strings(n) = Array.new(n) { |i| i.to_s }
      GC.disable
      traced do
        objects(1000)
        before = GC.stat(:total_allocated_objects)
        strings(500)
        $counted = GC.stat(:total_allocated_objects) - before
      end
      p $counted
    RUBY
    tree = Pitwall::Analyse::CallTreeBuilder.build([segment], weights: %i[objects bytes])
    rows = Pitwall::Analyse::Flat.rows(tree, :objects).to_h { |row| [row.method.name, row] }
    assert_includes 1000..1010, rows.fetch("Class#allocate").own # Ruby keeps a few for itself
    assert_includes 0..5, Integer(out) - rows.fetch("Object#strings").total # the call's own inline caches are its caller's
    bytes = Pitwall::Analyse::Flat.rows(tree, :bytes).to_h { |row| [row.method.name, row] }
    assert_includes 40_000..40_800, bytes.fetch("Class#allocate").own
  end

  def test_starts_and_stops_in_different_frames
    run_program(<<~'RUBY')
      def begin_it = Pitwall.start(record: "a.pit", mode: "none", collectors: { "trace" => {} })
      def end_it = [1].each { Pitwall.stop }
      def inner
        begin_it
        work
      end
      def work = 3.times { leaf }
      def leaf = nil
      def outer
        inner
        [1].each { leaf }
      end
      outer
      leaf
      end_it
    RUBY
    assert_sound(segment)
    calls = calls_of(segment)
    assert_equal [0, 0, 0, 1, 5, 1], calls.values_at("Object#outer", "Object#inner", "Object#begin_it", "Object#work", "Object#leaf", "Object#end_it")
    inner = tree([segment]).methods
    assert_includes inner.map(&:name), "Object#outer", "a frame that was open is its callees' caller"
  end

  def test_tail_calls_leave_no_entries
    trace(<<~'RUBY')
      code = <<~CODE
        def countdown(n)
          return leaf(n) if n == 0
          countdown(n - 1)
        end
        def leaf(n) = n
      CODE
      RubyVM::InstructionSequence.new(code, "tail.rb", "tail.rb", 1, tailcall_optimization: true, trace_instruction: false).eval
      traced { 10.times { countdown(50) } }
    RUBY
    assert_sound(segment)
    calls = calls_of(segment)
    assert_equal [510, 10], calls.values_at("Object#countdown", "Object#leaf")
    deepest = segment.calls.map { |row| depth(segment, row.node_id) }.max
    assert_operator deepest, :<, 15, "a frame that took another's place stands where that stood"
  end

  def depth(segment, node) = node.zero? ? 0 : 1 + depth(segment, segment.parents[node])

  def test_threads_that_are_killed_raise_or_exit
    trace(<<~'RUBY')
      def forever = loop { sleep 0.001 }
      def raises = raise("a")
      def fine = 5.times { leaf }
      def leaf = nil
      Thread.report_on_exception = false
      traced do
        killed = Thread.new { forever }
        raising = Thread.new { raises }
        leaving = Thread.new { fine; Thread.exit; leaf }
        sleep 0.02
        killed.kill.join
        raising.join rescue nil
        leaving.join
        8.times.map { Thread.new { fine } }.each(&:join)
      end
    RUBY
    assert_sound(segment)
    calls = calls_of(segment)
    assert_equal [1, 1, 9, 45], calls.values_at("Object#forever", "Object#raises", "Object#fine", "Object#leaf")
  end

  def test_a_forked_child_traces_itself
    trace(<<~'RUBY')
      def parent_only = nil
      def child_only = 3.times { leaf }
      def leaf = nil
      traced do
        parent_only
        pid = fork { sleep 0.01; child_only; Pitwall.stop } # its recording begins at its first safepoint
        Process.wait(pid)
        leaf
      end
    RUBY
    parent = calls_of(segment)
    assert_equal [1, 1, 0], parent.values_at("Object#parent_only", "Object#leaf", "Object#child_only")
    name = Dir.children(@dir).grep(/\Aa-\d+\.pit\z/).first
    child = calls_of(segment(name))
    assert_equal [1, 3, 0], child.values_at("Object#child_only", "Object#leaf", "Object#parent_only")
  end

  def test_what_a_killed_process_leaves
    result = attempt(<<~'RUBY')
      def leaf = nil
      Pitwall.start(record: "a.pit", mode: "none", flush_ns: 20_000_000, collectors: { "trace" => {} })
      10.times { leaf }
      burn(0.6)
      Process.kill(:KILL, Process.pid)
    RUBY
    assert_equal 9, result.status.termsig
    assert_equal 10, calls_of(segment)["Object#leaf"]
    assert_nil segment.tail
  end

  def test_in_a_trap_and_at_exit
    run_program(<<~'RUBY')
      def leaf = nil
      trap(:USR1) { Pitwall.start(record: "a.pit", mode: "none", collectors: { "trace" => {} }) }
      trap(:USR2) { 3.times { leaf } }
      Process.kill(:USR1, Process.pid)
      sleep 0.01 until Pitwall.recording?
      Process.kill(:USR2, Process.pid)
      20.times { sleep 0.002 }
      at_exit { leaf }
      exit
    RUBY
    assert_sound(segment)
    assert_equal 4, calls_of(segment)["Object#leaf"]
  end

  def test_beside_ractors_object_space_and_fibers_that_are_forgotten
    trace(<<~'RUBY')
      def leaf = nil
      $VERBOSE = nil
      def abandon = 300.times { e = Enumerator.new { |y| leaf; y << 1; leaf }; e.next }
      traced do
        abandon
        GC.start
        ObjectSpace.each_object(Class) { leaf }
        abandon
        Warning[:experimental] = false
        r = Ractor.new { 100.times { |i| i.to_s } }
        r.respond_to?(:value) ? r.value : r.take
      end
    RUBY
    assert_sound(segment)
    assert_equal 2, calls_of(segment)["Object#abandon"]
    assert_operator calls_of(segment)["Object#leaf"], :>, 900
  end

  def test_a_full_tree_says_what_it_lost
    trace(<<~'RUBY', options: "nodes: 50, objects: false")
      200.times { |i| eval("def m#{i} = leaf") }
      def leaf = nil
      traced { 200.times { |i| send("m#{i}") } }
    RUBY
    assert_sound(segment)
    assert_operator segment.tracing.fetch("nodes"), :<=, 50
    total = segment.calls.sum(&:calls) + segment.tracing.fetch("lost_calls")
    assert_operator total, :>=, 600
  end

  def test_more_ways_than_tables_hold_at_once
    trace(<<~'RUBY', options: "objects: false")
      %w[a b c d].each { |m| eval("def #{m}(n)\n n.zero? ? 0 : (a(n - 1); b(n - 1); c(n - 1); d(n - 1))\nend") }
      def many(n)
        n.times { |i| Thread.new { eval("def t#{i} = [1].each { |x| [x].map { |y| y.to_s } }"); send("t#{i}") }.join }
      end
      traced { a(8); many(50) }
    RUBY
    assert_sound(segment)
    assert_operator segment.tracing.fetch("nodes"), :>, 1 << 17
    assert_equal (4**9 - 1) / 3, calls_of(segment).values_at("Object#a", "Object#b", "Object#c", "Object#d").sum
    assert_equal [1] * 50, calls_of(segment).values_at(*50.times.map { |i| "Object#t#{i}" })
  end

  def test_filters
    source = <<~'RUBY'
      module Shop
        class Cart
          def sum = items.sum { |x| price(x) }
          def items = [1, 2, 3]
          def price(x) = Helper.tax(x) + x
        end
      end
      module Helper
        def self.tax(x) = [x].map { |y| y * 2 }.first
      end
      class Shopping; def go = Shop::Cart.new.sum; end
      traced { Shopping.new.go }
    RUBY
    only = ->(options) { trace(source, options: options) && calls_of(segment).reject { |name, calls| calls.zero? || name.start_with?("(") } }
    assert_equal({ "Shop::Cart#sum" => 1, "Shop::Cart#items" => 1, "block in Shop::Cart#sum" => 3, "Shop::Cart#price" => 3 }, only["class: 'Shop'"])
    under = only["only_under: 'Shop::Cart#price'"]
    assert_equal [3, 3, nil, nil], under.values_at("Shop::Cart#price", "Helper.tax", "Shop::Cart#sum", "Shopping#go")
    only["depth: 3"]
    assert_equal 3, segment.calls.map { |row| depth(segment, row.node_id) }.max
    assert_empty only["path: '/nowhere/*', class: 'None'"]
  end

  def test_garbage_put_off
    trace(<<~'RUBY', options: "gc: 'defer', gc_memory: 1")
      def fill = 40_000.times { "x" * 100 }
      traced { fill }
      abort "collection is off" if GC.disable
      GC.enable
    RUBY
    assert_operator segment.tracing.fetch("gc_over_memory"), :>, 0
    assert_sound(segment)
    trace(<<~'RUBY', options: "gc: 'off', gc_memory: 1")
      def fill = 40_000.times { "x" * 100 }
      traced { fill }
    RUBY
    assert_equal 1, segment.tracing.fetch("gc_over_memory")
  end

  def test_starts_and_stops_and_forks_under_threads
    out = run_program(<<~'RUBY')
      def work = Array.new(20) { |i| [i].map { |x| x.to_s } }
      busy = Array.new(3) { Thread.new { loop { work; Thread.new { work }.join; Fiber.new { work; Fiber.yield }.resume } } }
      limit = now + 1.5
      n = 0
      until now > limit && n > 5
        Pitwall.start(record: "a.pit", mode: "none", flush_ns: 10_000_000, collectors: { "trace" => { "bytes" => "1" } })
        rand < 0.5 ? sleep(0.005) : work
        GC.compact if GC.respond_to?(:compact) && n % 3 == 0
        Process.wait(fork { work; exit!(0) }) if n % 4 == 0
        (Pitwall.pause; work; Pitwall.resume) if n % 5 == 0
        Pitwall.stop
        n += 1
      end
      busy.each(&:kill).each(&:join)
      puts n
    RUBY
    assert_operator out.to_i, :>, 5
    read.segments.each { |part| assert_sound(part) unless part.tail["reason"] == "pause" }
  end

  def test_bad_input
    out = run_program(<<~'RUBY')
      puts problem { Pitwall.trace(depht: 1) { } }, problem { Pitwall.trace(depth: 0) { } }, problem { Pitwall.trace(gc: "never") { } }
      puts problem { Pitwall.trace(record: "a.pit") { Pitwall.trace { } } }
      TracePoint.new(:line) { puts problem { Pitwall.trace(record: "b.pit") { } } if __method__ != :x }.enable { 1 }
    RUBY
    lines = out.lines
    assert_match(/UsageError: unknown option depht: known are cpu, /, lines[0])
    assert_match(/UsageError: depth 0: must be a whole number/, lines[1])
    assert_match(/UsageError: gc "never": choose as-is, off, defer/, lines[2])
    assert_match(/StateError: already recording/, lines[3])
    assert_match(/CannotMeasure: cannot trace: .*TracePoint's block/, lines[4])
  end

  # Names are looked for in whichever thread has the GVL, while another was the last that called something.
  def test_no_thread_gets_the_cpu_time_of_another
    run_program(<<~'RUBY')
      burn(0.2) # so that clocks of native threads differ
      reader, writer = IO.pipe
      Pitwall.start(record: "a.pit", mode: "none", flush_ns: 10_000_000, collectors: { "trace" => {} })
      limit = now + 0.6
      n = 0
      until now > limit
        eval("def fresh#{n += 1}(text) = [text].map { |x| x.size }")
        thread = Thread.new { 20.times { send("fresh#{n}", reader.read(1)) } }
        20.times { writer.write("x") }
        thread.join
        Thread.new { Thread.current.report_on_exception = false; raise "x" }.join rescue nil
        Thread.new { sleep }.tap { Thread.pass }.kill.join
      end
      Pitwall.stop
    RUBY
    # A call without the GVL runs on, while the tracer counts its time as waiting. A thread with the clock of another
    # would have the 200 ms that the clocks differ by: the new threads wait for less than a millisecond.
    worst = segment.calls.max_by { |row| row.cpu - row.wall - row.wait }
    assert_operator worst.cpu, :<=, worst.wall + worst.wait + 20_000_000, worst.inspect
  end
end
