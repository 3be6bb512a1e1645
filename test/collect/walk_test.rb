# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/own_walk"
require_relative "../support/recorded_program"

# Stacks as the sampler's own walk reads them: what frames are called, that they are those of rb_profile_frames, and that
# whatever state a signal finds the VM in, nothing breaks.
class WalkTest < Minitest::Test
  include RecordedProgram

  KNOWN = OwnWalk.used?

  def settings = { interval_ns: 200_000 }

  def names(*args) = methods_of(segment(*args), :captures).keys

  def test_known_rubies_use_it_and_the_recording_says_so
    run_program("record { burn(0.01) }")
    assert_equal KNOWN ? "own" : "rb_profile_frames", segment.header.walk
    assert_equal KNOWN, segment.header.notes.grep(/blocks go by the name/).empty?
  end

  def test_blocks_have_names_of_their_own
    return pass unless KNOWN # rb_profile_frames is used, and tested by everything else
    run_program(<<~'RUBY')
      class Foo
        def bar = [1].each { burn(0.01); [2].map { burn(0.01) } }
        def self.baz = [1].each { [1].each { burn(0.01) } }
        def rescued
          raise "x"
        rescue
          burn(0.01)
        end
        def ensured
          yield
        ensure
          burn(0.01)
        end
        def stabby = -> { burn(0.01) }
        def evaluated = eval("burn(0.01)", binding, "some.erb", 7)
        define_method(:defined) { burn(0.01) }
        [1].each { burn(0.01) }
      end
      job = lambda do |*|
        Foo.new.bar
        Foo.baz
        Foo.new.rescued
        Foo.new.stabby.call
        catch(:out) { Foo.new.ensured { throw :out } }
        Foo.new.evaluated
        Foo.new.defined
        Class.new { def anonymous = [1].each { burn(0.01) } }.new.anonymous
        eval("class Foo; [1].each { burn(0.01) }; end", nil, "body.rb")
      end
      record { 8.times(&job) }
    RUBY
    names = self.names
    ["block in Foo#bar", "block (2 levels) in Foo#bar", "Foo#bar", "Foo.baz", "block (2 levels) in Foo.baz", "rescue in Foo#rescued",
     "ensure in Foo#ensured", "block in Foo#stabby", "Foo#evaluated", "block in <class:Foo> (program.rb:16)",
     "block in <class:Foo> (body.rb:1)", "block in (anonymous class)#anonymous (program.rb:27)"].each { |name| assert_includes names, name }
    assert_includes segment.frames.values.select { |f| f.name == "Foo#evaluated" }.map(&:path), "some.erb"
    assert_equal 0, segment.stat("refused_frames")
  end

  # What a block is called must not depend on what was on top when it was first seen.
  def test_each_frame_has_one_name
    run_program(<<~'RUBY')
      class Foo
        def go(n) = n.times { |i| inner(i) { |x| x.to_s * 3 } }
        def inner(i) = [i, i + 1].each { |x| yield x }
      end
      record(interval_ns: 100_000) { t = cpu; Foo.new.go(500) while cpu < t + 0.3 }
    RUBY
    segment = self.segment
    by_place = segment.frames.values.select { |f| f.path&.end_with?("program.rb") }.group_by { |f| [f.name, f.path, f.first_line] }
    assert_empty by_place.select { |_, frames| frames.size > 1 }.keys
    assert_equal ["Foo#go", "Foo#inner", "block in Foo#go", "block in Foo#inner", "block (2 levels) in Foo#go"].sort & names,
                 ["Foo#go", "Foo#inner", "block in Foo#go", "block in Foo#inner", "block (2 levels) in Foo#go"].sort if KNOWN
  end

  # Calls that a look catches as they come or go: whose method it is, another look tells, or another frame of the method.
  SHORT = <<~'RUBY'
    class Short
      METHODS = Array.new(60) { |n| class_eval("def m#{n}(x) = [x, #{n}].map { |y| y + x }.size", "short.rb", n + 1) }
    end
    short = Short.new
    %w[signal outside].each do |mode|
      record("#{mode}.pit", mode: mode, interval_ns: 100_000) { limit = cpu + 0.5; Short::METHODS.each { |name| short.public_send(name, 1) } while cpu < limit }
    end
  RUBY

  # Looks at one frame, of which some are too late to tell its method: not all of so many.
  OFTEN = 15

  def captures_by_frame(segment)
    segment.tallies.each_with_object(Hash.new(0)) do |tally, found|
      tally.enum_for(:each).each { |node, _, _, captures| found[segment.frame(node)] += captures unless node.zero? }
    end
  end

  def test_short_methods_have_their_class_in_each_mode
    return pass unless KNOWN
    run_program(SHORT)
    often = %w[signal outside].flat_map do |mode|
      captures_by_frame(segment("#{mode}.pit")).select { |frame, captures| frame.path == "short.rb" && captures >= OFTEN }.keys.map { |frame| [mode, frame.name] }
    end
    refute_empty often
    assert_empty often.reject { |_, name| name.match?(/\A(block in )?Short#m\d+\z/) }
  end

  def test_one_site_that_calls_several_c_functions_in_several_threads
    run_program(<<~'RUBY')
      def site(x) = x.join
      record(interval_ns: 200_000) do
        sleeper = Thread.new { sleep 1 }
        waiting = Thread.new { site(sleeper) }.tap { |thread| thread.name = "waits" }
        Thread.pass until waiting.stop?
        limit = now + 0.5
        words = %w[a b c d e f]
        site(words) while now < limit
        waiting.join
      end
    RUBY
    id = segment.threads.find { |_, thread| thread.name == "waits" }.first
    own = segment.tallies.select { |tally| tally.thread_id == id }.flat_map { |tally| tally.enum_for(:each).map { |node, wall,| [node.zero? ? nil : segment.frame(node).name, wall * segment.header.unit_ns] } }
    assert_operator own.select { |name,| name == "Thread#join" }.sum(&:last), :>, 300_000_000
    refute_includes own.map(&:first), "Array#join"
  end if KNOWN

  # Stacks put together at random from all kinds of frames: both walks must list the same, and so must a walk that only
  # looks at what has changed since the stack before.
  RANDOM_STACKS = <<~'RUBY'
    Pitwall.load_native!
    abort "no own walk" unless Pitwall::Native.walk == "own"
    class Maze
      STEPS = %i[plain block each map sort inject defined evaluated escaped fiber enumerator rescued ensured symbol default klass parent keyword match arrow]
      attr_reader :tests, :wrong

      def initialize(seed) = (@random = Random.new(seed); @tests = 0; @wrong = [])

      def ask
        @tests += 1
        difference = Pitwall::Native.walk_self_test || (Pitwall::Native.outside_self_test if @tests % 16 == 0)
        @wrong << difference if difference
      end

      def walk(depth)
        ask if @random.rand(3).zero?
        return ask if depth.zero?

        (1 + @random.rand(2)).times { send(STEPS.sample(random: @random), depth - 1) }
      end

      def plain(d) = walk(d)
      def block(d) = yielder { yielder { walk(d) } }
      def yielder = yield
      def each(d) = [1].each { |_| walk(d) }
      def map(d) = { 1 => 2 }.map { |_, _| walk(d) }
      def sort(d) = [2, 1].sort_by { |x| walk(d - 1) if d > 1 && x == 1; x }
      def inject(d) = (1..2).inject { |a, b| walk(d); a + b }
      define_method(:defined) { |d| [1].each { walk(d) } }
      def evaluated(d) = eval("walk(d); 1")
      def escaped(d) = proc { walk(d) }.then { |p| [1].each(&p) }
      def fiber(d) = Fiber.new { walk(d) }.resume
      def enumerator(d) = Enumerator.new { |y| walk(d); y << 1 }.next
      def rescued(d) = (begin; raise "x"; rescue; walk(d); end)
      def ensured(d) = catch(:x) { begin; throw :x; ensure; walk(d); end }
      def symbol(d) = [self].each(&:ask)
      def default(d) = Hash.new { |h, k| walk(d); 1 }[:x]
      def klass(d) = (maze = self; Class.new { maze.walk(d) })
      def parent(d) = Deeper.new(self).plain(d)
      def keyword(d, x: walk(d)) = x
      def match(d) = "a".gsub(/a/) { walk(d); "b" }
      def arrow(d) = ->(x) { walk(x) }.(d)
    end
    class Deeper < Maze
      def initialize(maze) = @maze = maze
      def walk(d) = @maze.walk(d)
      def plain(d) = super
    end
    seed = Integer(ENV.fetch("SEED"))
    mazes = 150.times.map { |i| Maze.new(seed + i).tap { |m| m.walk(7) } }
    threads = 4.times.map { |i| Thread.new { Maze.new(seed - 1 - i).tap { |m| m.walk(7) } } }
    mazes.concat(threads.map(&:value))
    puts mazes.sum(&:tests), mazes.flat_map(&:wrong).tally.inspect
  RUBY

  def random_stacks(env: {}, **options)
    return pass unless KNOWN # rb_profile_frames is used, and tested by everything else
    seed = Integer(ENV["SEED"] || rand(1 << 30))
    tests, wrong = run_program(RANDOM_STACKS, env: { "SEED" => seed.to_s, **env }, **options).lines(chomp: true)
    assert_operator Integer(tests), :>, 1000, "SEED=#{seed}"
    assert_equal "{}", wrong, "SEED=#{seed}"
  end

  def test_both_walks_list_the_same_on_random_stacks = random_stacks

  def test_both_walks_list_the_same_under_yjit
    return pass unless defined?(RubyVM::YJIT)
    random_stacks_under("yjit")
  end

  def test_both_walks_list_the_same_under_zjit
    return pass unless defined?(RubyVM::ZJIT)
    random_stacks_under("zjit")
  end

  # RUBYOPT and TEST_RUBY_OPTIONS may ask for the other JIT, and Ruby takes one only.
  def random_stacks_under(jit)
    define_singleton_method(:ruby_options) { [] }
    random_stacks(options: ["--#{jit}", "--#{jit}-call-threshold=2"], env: { "RUBYOPT" => nil })
  end

  # A frame's stack is cut next to the root when it is too deep, and what is left agrees from sample to sample.
  def test_stacks_deeper_than_the_limit_are_cut_at_the_root
    run_program(<<~'RUBY')
      def deep(n) = n.zero? ? burn(0.1) : deep(n - 1)
      def deeper(n) = n.zero? ? (burn(0.02); deep(100)) : deeper(n - 1)
      record { deeper(5000); burn(0.02); deep(4000); deep(10) }
    RUBY
    segment = self.segment
    assert_sane(segment)
    assert_operator segment.stat("truncated"), :>, 0
    names = segment.node_frames.map { |id| segment.frames[id]&.name }
    at_root = segment.parents.each_index.select { |node| node.positive? && segment.parents[node].zero? }
    assert_equal ["(stack cut here)", "<main>"], at_root.map { |node| names[node] }.uniq.sort & ["(stack cut here)", "<main>"]
    cut = names.each_index.select { |node| names[node] == "(stack cut here)" }
    assert_empty cut - at_root, "cut in the middle of a stack"
  end

  HARD = {
    "compaction" => <<~'RUBY',
      3.times do
        keep = Array.new(20_000) { "x" * rand(50) }
        eval("def dyn#{rand(100)} = [1, 2].each { |x| [x].map { |y| y.to_s } }; 300.times { dyn#{rand(100)} rescue 0 }")
        GC.compact
      end
      GC.auto_compact = true
      60_000.times { [1.to_s, { a: 2 }].each { |x| x } }
      GC.start
    RUBY
    "gc_stress" => 'GC.stress = true; 60.times { "a" + "b"; { a: 1 }.map { |k, v| [k, v] } }; GC.stress = false',
    "methods that come and go" => <<~'RUBY',
      600.times { |i| eval("def m#{i} = #{i}.times.map { |x| [x].each { x } }.size; m#{i}"); Object.send(:remove_method, "m#{i}") }
      GC.start
    RUBY
    "fibers" => '500.times { f = Fiber.new { 10.times { Fiber.yield [1, 2].map { |x| x.to_s } } }; 10.times { f.resume } }',
    "threads" => '300.times.each_slice(20) { |s| s.map { Thread.new { (1..500).sum { |x| x.to_s.size } } }.each(&:join) }',
    "overflow" => 'def rec(n) = [n].each { |x| rec(x + 1) }; 3.times { begin; rec(0); rescue SystemStackError; end }',
    "exceptions" => '5000.times { begin; raise "a"; rescue; [1].each { 1 }; ensure; catch(:x) { throw :x }; end }',
    "environments that escape" => '30_000.times { |i| a = i; b = proc { a += 1; proc { a + i } }; b.call.call; binding if i % 10 == 0 }',
    "ractors" => '$VERBOSE = nil; 3.times.map { Ractor.new { 5000.times { [1, 2].map { |x| x.to_s } }; 1 } }.each { |r| r.respond_to?(:value) ? r.value : r.take }',
    "forks" => '10.times { Process.wait(fork { 2000.times { [1].map { |x| x.to_s } }; exit!(0) }) }'
  }.freeze

  HARD.each do |name, source|
    %w[signal outside].each do |mode|
      define_method(:"test_nothing_breaks_with_#{name.tr(" ", "_")}_in_mode_#{mode}") do
        run_program("start(interval_ns: 100_000, mode: #{mode.dump})\n#{source}\nstop")
        assert segment.tail
      end
    end
  end
end
