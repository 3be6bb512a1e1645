# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/allocating_program"

# What the garbage collector and the program may do meanwhile: every object is found again, and the sums hold.
class AllocationsHazardsTest < Minitest::Test
  include AllocatingProgram

  def assert_whole(name = "a.pit") = assert_balanced(segment(name))

  # Each request for a burst makes IO.select start over. With this many objects a collection takes longer than the
  # pause between two requests.
  def test_a_program_gets_on_with_bursts_under_gc_stress
    collections = run_program(<<~'RUBY').to_i
      kept = Array.new(150_000) { |i| "object #{i}" }
      reader, writer = IO.pipe
      writer << "x"
      before = 0
      follow("a.pit", { "bursts" => "1" }) do
        before = GC.count
        GC.stress = true
        IO.select([reader])
        GC.stress = false
        puts GC.count - before
      end
    RUBY
    assert_operator collections, :<, 1_000
  end

  def test_under_gc_stress
    run_program(<<~'RUBY')
      Thing = Struct.new(:name)
      def job(n) = n.times { |i| Thing.new("x") }
      follow { GC.stress = true; job(100); GC.stress = false }
      follow("b.pit", { "stacks" => "1" }) { GC.stress = true; job(50); GC.stress = false }
    RUBY
    assert_whole
    assert_whole("b.pit")
    assert_equal [100, 100], by_line.values_at([2, "Thing"], [2, "String"])
    assert_equal [50, 50], by_line("b.pit").values_at([2, "Thing"], [2, "String"])
  end

  def test_objects_that_move_are_followed
    out = run_program(<<~'RUBY')
      Thing = Class.new { def initialize = @a = 1 }
      def make(n) = Array.new(n) { Thing.new }
      (puts "no compaction"; exit) unless GC.respond_to?(:compact)
      follow do
        Thread.new { $holes = make(20_000); $kept = make(20_000); nil }.join # on a machine stack that goes away
        $holes = $holes.each_slice(7).map(&:first)
        GC.start
        begin
          GC.compact
        rescue NotImplementedError
          puts "no compaction"
        end
        GC.verify_compaction_references rescue nil
        5.times { Thread.new { make(10_000); nil }.join; GC.start }
        moved = GC.latest_compact_info[:moved] || {}
        puts moved.size.positive? ? "moved" : "stayed"
        Thread.new { $kept = $kept.first(5_000).map(&:itself); $holes = nil }.join
        GC.start
      end
      puts ObjectSpace.each_object(Thing).count # of the recording's own last collection, as words left on the stack may keep some through one before
    RUBY
    skip "this Ruby does not compact" if out.include?("no compaction")
    assert_balanced(segment, moved: true)
    assert_equal 90_000, by_line[[2, "Thing"]]
    assert_in_delta Integer(out.lines.last), by_line("a.pit", :retained)[[2, "Thing"]], 10
    assert_includes out, "moved"
  end

  # Pages of 3.1's heap are smaller than later ones: their heads were looked for where nothing is, and living objects given up.
  def test_what_lives_is_followed_through_many_compactions
    out = run_program(<<~'RUBY')
      Thing = Class.new { def initialize = @a = 1 }
      def make(n) = Array.new(n) { Thing.new }
      $kept = []
      follow do
        50.times do |i|
          $kept.concat(make(100))
          Array.new(3000) { |j| "garbage #{j}" }
          begin
            GC.compact if i % 5 == 0
          rescue NotImplementedError, NoMethodError
            $none = true
          end
          GC.start
        end
      end
      puts $none ? "no compaction" : $kept.size
    RUBY
    skip "this Ruby does not compact" if out.include?("no compaction")
    assert_equal 5000, by_line("a.pit", :retained)[[2, "Thing"]]
  end

  def test_under_auto_compaction
    run_program(<<~'RUBY')
      Thing = Class.new
      def make(n) = Array.new(n) { [Thing.new, "abc" * 20, { a: 1 }] }
      begin
        GC.auto_compact = true
      rescue NotImplementedError
      end
      follow do
        kept = []
        20.times { |i| kept << make(1000); kept.shift if i.odd?; GC.start }
        eval("class Late#{rand(1000)}; def made = Object.new; end") # moves may change where keys lie
        20.times { |i| kept << make(1000); GC.start if i % 3 == 0 }
      end
    RUBY
    assert_balanced(segment, moved: true)
    assert_equal 40_000, by_line[[2, "Thing"]]
  end

  def test_classes_come_and_go_and_move
    run_program(<<~'RUBY')
      def anonymous = Class.new.new
      def late(name)
        klass = Class.new
        20.times { klass.new }
        Object.const_set(name, klass)
      end
      GC.auto_compact = true rescue nil
      follow do
        Thread.new { 300.times { |i| anonymous; GC.start if i % 50 == 0 } }.join
        late(:Named)
        GC.start
        30.times { Named.new }
        $alive = 0
        GC.start
        ObjectSpace.each_object(Class) { |c| $alive += 1 if c.name.nil? && !c.singleton_class? && c.superclass == Object }
      end
      abort "#{$alive} anonymous classes are kept" if $alive > 60
    RUBY
    assert_balanced(segment, moved: true)
    counts = by_line
    assert_equal 300, counts[[1, "(anonymous class)"]]
    assert_equal 20, counts[[4, "Named"]]
    assert_equal 30, counts[[12, "Named"]]
  end

  def test_nothing_is_kept_alive
    out = run_program(<<~'RUBY')
      require "weakref"
      Thing = Class.new
      def make(n) = Array.new(n) { Thing.new }
      follow do
        refs = Thread.new { make(1000).map { |thing| WeakRef.new(thing) } }.value
        3.times { GC.start }
        puts refs.count(&:weakref_alive?)
        puts ObjectSpace.each_object(Thing).count
      end
    RUBY
    out.lines.each { |line| assert_operator line.to_i, :<=, 5 }
    assert_whole
  end

  def test_finalizers_and_walks_over_all_objects
    out = run_program(<<~'RUBY')
      ended = 0
      finalizer = ->(_) { ended += 1; "made by a finalizer" * 2 }
      follow do
        100.times do
          ObjectSpace.define_finalizer(Object.new, finalizer)
        end
        GC.start
        count = 0
        ObjectSpace.each_object { count += 1; Object.new if count < 100 }
        ObjectSpace.count_objects
      end
      puts ended
    RUBY
    assert_operator out.to_i, :>=, 90
    assert_whole
  end

  def test_threads_fibers_exceptions
    run_program(<<~'RUBY')
      def raising = raise(ArgumentError, "x") rescue nil
      follow do
        threads = Array.new(8) { Thread.new { 500.times { Object.new; Thread.pass if rand(50) == 0 } } }
        fibers = Array.new(50) { Fiber.new { 10.times { Object.new; Fiber.yield } } }
        10.times { fibers.each(&:resume) }
        threads.each(&:join)
        100.times { raising }
        catch(:out) { 100.times { |i| Object.new; throw :out if i == 49 } }
        Thread.new { loop { Object.new } }.tap { |t| sleep 0.01; t.kill; t.join }
      end
    RUBY
    assert_whole
    counts = by_line
    assert_equal [4000, 500, 50], counts.values_at([3, "Object"], [4, "Object"], [8, "Object"])
    assert_equal 100, counts[[1, "ArgumentError"]]
  end

  def test_fork
    run_program(<<~'RUBY')
      def job(n) = n.times { Object.new }
      follow do
        job(100)
        fork { job(200); exit! if ARGV.any? }
        Process.wait
        job(300)
      end
    RUBY
    assert_whole
    assert_equal 400, by_line[[1, "Object"]]
    child = Dir.children(@dir).grep(/\Aa-\d+\.pit\z/).fetch(0)
    assert_whole(child)
    # A child begins at its first safepoint, which may be inside the loop.
    assert_includes 150..200, by_line(child)[[1, "Object"]]
  end

  def test_killed
    result = attempt(<<~'RUBY')
      Thing = Class.new
      def job = 1000.times { Thing.new }
      follow_from_here(flush_ns: 20_000_000)
      job
      GC.start
      limit = cpu + 0.4
      "x" while cpu < limit
      GC.start
      limit = cpu + 0.3
      "x" while cpu < limit
      Process.kill(:KILL, $$)
    RUBY
    assert_equal 9, result.status.termsig
    site = segment.sites.find { |found| found.class_name == "Thing" }
    assert site, "class names come with a flush"
    assert_equal 1000, site.count
    assert_equal 1000, by_line[[2, "Thing"]]
    assert_match(/killed/, allocations.losses.join)
  end

  def test_ended_in_the_middle_of_everything
    { "raise 'x'" => 1, "exit 3" => 3, "Thread.new { exit 4 }.join" => 4, "GC.stress = true; exit 5" => 5 }.each do |ending, status|
      result = attempt("def job = 100.times { Object.new }\nfollow_from_here; job; #{ending}")
      assert_equal status, result.status.exitstatus, ending
      assert_whole
      assert_equal 100, by_line[[1, "Object"]], ending
    end
  end

  def test_beside_other_hooks
    run_program(<<~'RUBY')
      require "objspace"
      events = 0
      trace = TracePoint.new(:call, :c_call, :return) { events += 1; Object.new }
      def job = 100.times { Object.new }
      follow do
        ObjectSpace.trace_object_allocations { job }
        trace.enable { job }
      end
    RUBY
    assert_whole
    assert_equal 200, by_line[[4, "Object"]]
  end

  def test_started_and_stopped_in_odd_places
    run_program(<<~'RUBY')
      trap("USR1") { follow_from_here }
      trap("USR2") { stop }
      def job = 100.times { Object.new }
      Process.kill(:USR1, $$)
      job
      Process.kill(:USR2, $$)
      ObjectSpace.each_object(Class) { |c| follow("b.pit") { job }; break }
      Fiber.new { follow_from_here("c.pit") }.resume
      job
      Thread.new { stop }.join
      ObjectSpace.define_finalizer(Object.new, ->(_) { })
      5.times { |i| follow("d.pit") { job } }
      follow_from_here("e.pit"); Pitwall.pause; job; Pitwall.resume; job; stop
    RUBY
    %w[a b c d].each do |name|
      assert_whole("#{name}.pit")
      assert_equal 100, by_line("#{name}.pit")[[3, "Object"]], name
    end
    assert_equal 100, by_line("e.pit")[[3, "Object"]]
  end

  def test_ractors
    run_program(<<~'RUBY', options: ["-W0"])
      def job = 100.times { Object.new }
      follow do
        job
        ractors = Array.new(2) { Ractor.new { 1000.times { Object.new }; GC.start; :done } }
        ractors.each { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }
        job
      end
    RUBY
    totals = segment.allocation_totals
    if RUBY_VERSION < "4"
      assert_operator totals.flags, :>, 0
      assert_match(/Ractor/, allocations.losses.join)
      assert_equal RUBY_VERSION < "3.2" ? 100 : 200, by_line[[1, "Object"]]
    else
      assert_equal [0, 200, 2000], [totals.flags, by_line[[1, "Object"]], by_line[[4, "Object"]]]
      assert_equal totals.allocated, segment.sites.sum(&:count)
    end
    assert_operator totals.allocated, :>=, segment.sites.sum(&:count)
    segment.sites.each { |site| assert_equal site.count, site.freed + site.retained if site.program? }
  end

  # Who holds objects is named by Ruby code, amid which other threads run: one that stops the recording must not free it under that.
  def test_a_stop_while_the_first_ractor_ends_the_counting
    out = run_program(<<~'RUBY', options: ["-W0"])
      KEEP = []
      follow_from_here("a.pit", { "growth" => "1", "holders" => "1" })
      24.times { |round| 40.times { |i| KEEP << "kept #{round} #{i}" }; Array.new(50) { |i| "garbage #{i}" }; GC.start; sleep 0.003 }
      amid = false
      TracePoint.new(:call) { |point| (amid = true; 50.times { Thread.pass }) if point.method_id == :named }.enable
      creator = Thread.new { Ractor.new { 1 }.take }
      Thread.pass until amid
      puts problem { stop }
      creator.join
      stop if Pitwall.recording?
    RUBY
    assert_equal "StateError: another thread is starting or stopping the recording\n", out
    assert_whole
  end if RUBY_VERSION < "3.2" # later, counting goes on

  def test_ctrl_c_while_holders_are_named
    out = run_program(<<~'RUBY')
      KEEP = []
      follow_from_here("a.pit", { "growth" => "1", "holders" => "1" })
      24.times { |round| 40.times { |i| KEEP << "kept #{round} #{i}" }; Array.new(50) { |i| "garbage #{i}" }; GC.start; sleep 0.003 }
      begin
        TracePoint.new(:call) { |point| (Process.kill(:INT, Process.pid); sleep) if point.method_id == :named }.enable { stop }
      rescue Interrupt
        puts "Interrupt #{Pitwall.recording?}"
      end
    RUBY
    assert_equal "Interrupt false\n", out
    assert_whole
    assert_equal "stop", segment.tail.fetch("reason")
  end

  # What another Ractor's collection frees nobody tells of, and with the last object of a page its memory goes.
  def test_objects_that_another_ractor_freed_before_others_moved
    run_program(<<~'RUBY', options: ["-W0"])
      (puts "no compaction"; exit) unless GC.respond_to?(:compact) && (GC.compact rescue nil)
      follow do
        3.times do
          Array.new(200_000) { Object.new }
          ractor = Ractor.new { 4.times { GC.start } }
          ractor.respond_to?(:value) ? ractor.value : ractor.take
          GC.compact
        end
      end
    RUBY
    segment.sites.each { |site| assert_operator site.freed + site.retained, :<=, site.count if site.program? }
  end if RUBY_VERSION >= "3.2" # before, counting ends at the first Ractor

  # It silences the collection under way: what that one frees from then on nobody tells of, though each collection was told.
  def test_objects_move_after_a_ractor_was_freed_amid_a_collection
    run_program(<<~'RUBY', options: ["-W0"])
      (puts "no compaction"; exit) unless GC.respond_to?(:compact) && (GC.compact rescue nil)
      GC.auto_compact = true
      2.times do |n|
        follow("a#{n}.pit", { "stacks" => "1" }) do
          keep = Array.new(20) { Array.new(20_000) { "x" * 3 } }
          6.times do
            ractors = Array.new(2) { Ractor.new { 300.times { [1, 2].map(&:to_s) } } }
            keep.shift(3)
            ractors.each { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }
            keep.shift(1)
            Array.new(30_000) { "y" * 2 }
            GC.start
          end
          keep = nil
          GC.start
        end
      end
    RUBY
    segment("a1.pit").sites.each { |site| assert_operator site.freed + site.retained, :<=, site.count if site.program? }
  end if RUBY_VERSION >= "3.3" # older ones crash by themselves with Ractors now and then

  # Ruby 3.3 and 3.4 then tell of the main Ractor's objects no more, until they are asked.
  def test_counting_goes_on_when_a_ractor_is_freed
    run_program(<<~'RUBY', options: ["-W0"])
      def job = 50_000.times { Object.new }
      follow do
        Thread.new { Ractor.new { 1 }.then { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take } }.join
        3.times { GC.start }
        4.times { job }
      end
    RUBY
    assert_operator by_line[[1, "Object"]], :>, 190_000
    assert_operator by_line[[1, "Object"]], :<=, 200_000
  end if RUBY_VERSION >= "3.2"

  # Ruby's own tracing, which asks at each object for path and line, and what it says line by line.
  def test_agrees_with_ruby_s_own_tracing
    out = run_program(<<~'RUBY')
      require "objspace"
      Point = Struct.new(:x, :y)
      def job
        kept = []
        50.times { |i|
          kept << [i.to_s, "lit", :sym.to_proc, 1.0 / (i + 1), 2**80]
          kept << { a: i,
                    "b" => "c#{i}" }
          kept << Point.new([i], i..(i + 1))
          kept << /x#{i}/.match("x#{i}") << Class.new << Time.at(i) << i.to_s.to_sym
          kept << ->(x) { x } << kept.map(&:object_id).first(3) << [1, [2, [3]]].flatten
          kept << "a,b,c".split(",") << "%05d" % i << "x".dup.force_encoding("BINARY") << Rational(1, 3) << Complex(1, i)
        }
        kept
      end
      GC.disable
      job
      kept = nil
      generation = GC.count
      ObjectSpace.trace_object_allocations_start
      follow { kept = job }
      ObjectSpace.trace_object_allocations_stop
      counts = Hash.new(0)
      ObjectSpace.each_object do |object|
        next unless (line = ObjectSpace.allocation_sourceline(object)) && ObjectSpace.allocation_sourcefile(object).end_with?("program.rb")
        counts[[line, object.class.name || "(anonymous class)"]] += 1 if line.between?(5, 14)
      end
      p counts
    RUBY
    expected = eval(out)
    found = by_line("a.pit", :retained).select { |(line, name), _| line.between?(5, 14) && name != "(hidden)" }
    expected.each do |place, count|
      count *= 2 if place.last == "Class" # each has a singleton class, which ObjectSpace does not list
      assert_equal count, found[place], "#{place.inspect}\n#{found}"
    end
  end
end
