# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require "pitwall/bench_child/assembled"
require "set"

# The process that measures one case. The tests talk to it through its pipe, as the host does.
class BenchChildTest < Minitest::Test
  include CommandLine

  CHILD = File.join(Checkout::ROOT, "lib/pitwall/bench_child/assembled.rb")
  FIXTURES = File.join(Checkout::ROOT, "test/fixtures/bench")
  UNESCAPED = { "\\\\" => "\\", "\\t" => "\t", "\\n" => "\n" }.freeze
  METRICS = %w[wall cpu objects bytes gc_runs gc_time].freeze

  # lines: what came through the pipe, as Arrays of fields
  Answer = Struct.new(:lines, :out, :err, :status) do
    def all(kind) = lines.select { |line| line.first == kind }.map { |line| line.drop(1) }
    def [](kind) = all(kind).first
    def values(metric) = all("values").to_h[metric]&.then { |text| text.split.map { |value| Integer(value) } }
    def notes = all("note").flatten
    def kinds = lines.map(&:first)
  end

  def child(mode, file, flags: ["--disable-gems"], env: {}, **keys)
    file = File.join(FIXTURES, file) unless file == "-e" || file.start_with?("/")
    words = keys.flat_map { |key, value| Array(value).map { |each| "#{key}=#{each}" } }
    read, write = IO.pipe
    pid = Process.spawn(CLEAN.merge(env), RUBY, *flags, CHILD, "9", mode, file, *words,
                        9 => write, in: File::NULL, out: file("out"), err: file("err"), pgroup: true)
    write.close
    text = Thread.new { read.read }
    status = wait(pid) { Process.kill("KILL", -pid) }
    lines = text.value.force_encoding(Encoding::UTF_8).lines(chomp: true)
    lines = lines.map { |line| line.split("\t", -1).map { |field| field.gsub(/\\[\\tn]/, UNESCAPED) } }
    Answer.new(lines, File.read(file("out")), File.read(file("err")), status)
  ensure
    read.close
  end

  # Few iterations: the counts are what matters.
  def brief(file, index, **keys) = child("run", file, **{ case: index, batch: 20, batches: 3, warmup: 2 }, **keys)

  def code(text, mode = "run", **keys)
    File.write(file("code.rb"), text)
    child(mode, "-e", codefile: file("code.rb"), **{ case: 0, batch: 20, batches: 3, warmup: 2 }, **keys)
  end

  def bench(text, mode = "list", **keys)
    File.write(file("own.rb"), text)
    child(mode, file("own.rb"), **keys)
  end

  def assert_measured(answer)
    assert_equal "done", answer.kinds.last, "#{answer.lines}\n#{answer.err}"
    assert_predicate answer.status, :success?
    answer
  end

  def refused(answer)
    assert_equal 70, answer.status.exitstatus, answer.lines.inspect
    assert_equal ["error"], answer.kinds.last(1)
    answer["error"]
  end

  # --- a file for benchmark-ips ---

  def test_lists_a_file_written_for_benchmark_ips
    answer = child("list", "ips.rb", flags: [])
    blocks = [%w[0 0], %w[1 0], %w[2 0], %w[3 0], %w[4 0], %w[5 1], %w[6 1], %w[7 2]]
    assert_equal blocks, answer.all("case").map { |fields| fields.first(2) }
    assert_equal %w[empty object loop code strings upcase downcase empty], answer.all("case").map { |fields| fields[3] }
    assert_equal ["compare"] * 7 + [""], answer.all("case").map(&:last)
    assert_equal ["ignored:config suite", "ignored:x.hold!"], answer.notes
    assert_equal %w[end], answer.lines.last
    assert_equal "main\narguments []\ndata at the end\n", answer.out
    assert_empty answer.err
  end

  def test_counts_of_a_deterministic_block_are_exact
    { 0 => 0, 1 => 1, 2 => 1, 3 => 2, 4 => 4 }.each do |index, objects|
      answer = assert_measured(brief("ips.rb", index, flags: []))
      assert_equal [objects * 20] * 3, answer.values("objects"), index
      assert_equal [objects * 20 * 40] * 3, answer.values("bytes"), index
      assert_equal [0] * 3, answer.values("gc_runs"), index
    end
  end

  def test_counts_are_exact_under_a_jit
    return unless defined?(RubyVM::YJIT)

    { "Object.new" => 1, "" => 0 }.each do |text, objects|
      answer = assert_measured(code(text, batch: 0, warmup: 0, batches: 10, flags: %w[--disable-gems --yjit]))
      assert_equal [objects * Integer(answer["batch"].first)] * 10, answer.values("objects")
    end
    answer = assert_measured(child("run", "sweep.rb", case: 12, batches: 10, flags: %w[--disable-gems --yjit]))
    assert_equal [Integer(answer["batch"].first)] * 10, answer.values("objects")
  end

  def test_a_larger_slot_counts_as_what_it_takes
    bytes = code("# frozen_string_literal: true\n'x' * 100").values("bytes").first / 20
    GC.stat_heap.dig(0, :total_allocated_objects) ? assert_operator(bytes, :>, 100) : assert_equal(40, bytes)
  rescue NoMethodError
    assert_equal 40, bytes # Ruby 3.1 has one size
  end

  def test_says_all_that_was_measured
    answer = assert_measured(brief("ips.rb", 1, flags: []))
    assert_equal %w[20 3], answer["ready"]
    assert_equal [%w[60], %w[20]], [answer["iterations"], answer["batch"]]
    METRICS.each { |metric| assert_equal 3, answer.values(metric).size, metric }
    (METRICS - %w[gc_runs gc_time]).each { |metric| assert_predicate answer.values(metric).min, :positive?, metric }
    %w[minor_faults major_faults voluntary_switches involuntary_switches max_rss].each do |metric|
      assert_equal 1, answer.values(metric).size, metric
    end
    assert_operator answer.values("max_rss").first, :>, 4_000_000
    RubyVM.stat.each_key { |name| assert_equal [0], answer.values(name.to_s), name }
    assert_predicate Integer(answer["first"].first), :positive?
    assert_equal ["41"], answer["warmup"] # the first call and two batches
    assert_nil answer["digest"]
    assert_equal "main\narguments []\ndata at the end\n", answer.out # and nothing at exit
  end

  def test_finds_batch_warmup_and_batches
    answer = assert_measured(child("run", "ips.rb", flags: [], case: 1))
    batch, batches = answer["ready"].map { |number| Integer(number) }
    assert_operator batch, :>, 100
    assert_equal 30, batches
    assert_operator Integer(answer["warmup"].first), :>, 10 * batch
    assert_equal [batch] * 30, answer.values("objects")
  end

  def test_a_slow_case_gets_few_iterations
    answer = assert_measured(code("sleep 0.11", batch: 0, batches: 0, warmup: 0))
    assert_equal %w[1 3], answer["ready"]
    assert_operator Integer(answer["warmup"].first), :<=, 30
    answer.values("wall").each { |wall| assert_operator wall, :>, 110_000_000 }
    answer.values("cpu").each { |cpu| assert_operator cpu, :<, 110_000_000 }
  end

  def test_a_clock_that_is_too_coarse_is_noted
    assert_includes assert_measured(code("", batch: 1)).notes, "coarse_clock"
    refute_includes assert_measured(code("sleep 0.01", batch: 1)).notes, "coarse_clock"
  end

  def test_what_never_becomes_steady_is_noted
    answer = assert_measured(code("sleep($s = ($s || 0.004) * 1.1)", batch: 1, warmup: 0))
    assert_includes answer.notes, "unsteady"
  end

  def test_only_runs_for_a_profiler
    answer = assert_measured(code("$stdout.print 'x'", iterations_only: 4, batch: 5))
    assert_equal ["done"], answer.kinds
    assert_equal "x" * 20, answer.out
  end

  # --- code ---

  def test_measures_code
    answer = code("Object.new", "list")
    assert_equal [["case", "0", "0", "", "-e", "", ""], ["end"]], answer.lines
    assert_equal [20] * 3, assert_measured(code("Object.new")).values("objects")
    assert_equal [0] * 3, assert_measured(code("# frozen_string_literal: true\nnext if false\n'x'")).values("objects")
    # In no module; with main as self; in the loop itself.
    text = "puts \"\#{self} \#{defined?(Case).inspect || 7}\""
    assert_equal "main 7\n", assert_measured(code(text, iterations_only: 1, batch: 1)).out.sub("nil", "7")
    assert_equal ["load", "SyntaxError", "-e:1"], refused(code("x = [", "list")).values_at(0, 1, 3)
    assert_equal ["run", "NoMethodError", "-e:2"], refused(code("1\n[1].no_such_method")).values_at(0, 1, 3)
  end

  def test_requires_come_first
    File.write(file("a.rb"), "A = 1")
    File.write(file("b.rb"), "B = A")
    assert_measured(code("B", require: [file("a.rb"), file("b.rb")]))
    assert_equal %w[load LoadError], refused(code("B", require: file("c.rb"))).first(2)
  end

  # --- Pitwall.bench ---

  def test_lists_a_sweep
    answer = child("list", "sweep.rb")
    cases = answer.all("case")
    assert_equal ["0", "0", "lists", "dup n=1 kind=array", "n=1,kind=array", "growth,growth:n"], cases.first
    assert_equal ["6", "0", "lists", "n n=100 kind=array", "n=100,kind=array", "growth,growth:n"], cases[6]
    assert_equal ["12", "1", "", "before", "", "compare,baseline,before"], cases[12]
    assert_equal [["17", "3", "sweep, positional", "n=5", "n=5", "growth,growth:n"],
                  ["18", "3", "sweep, positional", "n=6", "n=6", "growth,growth:n"]], cases.last(2)
    assert_empty answer.out
  end

  def test_a_case_gets_state_and_params
    assert_equal "after 1000 array 1000\n", assert_measured(brief("sweep.rb", 3)).out
    assert_equal [20] * 3, brief("sweep.rb", 3).values("objects")
    digests = [5, 6, 9, 17, 18].map { |index| assert_measured(brief("sweep.rb", index, check: 1))["digest"].first }
    assert_equal [10, 100, 0, 5, 6].map { |value| digest(value) }, digests
    # The loop of a block that takes keywords allocates nothing either.
    assert_equal [0] * 3, brief("sweep.rb", 5).values("objects")
  end

  def test_what_is_made_before_each_iteration_is_not_counted
    answer = assert_measured(brief("sweep.rb", 12, batch: 2500))
    assert_equal [2500] * 3, answer.values("objects")
    assert_equal [0] * 3, assert_measured(brief("sweep.rb", 13)).values("objects")
    # By CPU time, as other work on the machine lengthens wall time.
    before = "t = Process.clock_gettime(2) + 0.05; nil while Process.clock_gettime(2) < t"
    text = "Pitwall.bench { |x| x.before { #{before} }; x.report('a') { |_| } }"
    answer = assert_measured(bench(text, "run", case: 0, batch: 2, batches: 2, warmup: 1))
    answer.values("cpu").each { |cpu| assert_operator cpu, :<, 50_000_000 }
  end

  def test_a_block_by_number_spares_the_others
    text = "2.times { |i| Benchmark.ips { |x| puts \"body \#{i}\"; x.report('a') { } ; x.report('b') { } } }"
    once = { batch: 1, batches: 1, warmup: 1 }
    assert_equal "body 0\nbody 1\n", assert_measured(bench(text, "run", case: 3, **once)).out
    assert_equal "body 1\n", assert_measured(bench(text, "run", case: 3, block: "1:2", **once)).out
    assert_match(/case 4 was never reached: the file ended after 4 cases/, refused(bench(text, "run", case: 4))[2])
  end

  # --- what a digest tells apart ---

  def digest(value) = Pitwall::Bench::Digest.of(value)

  def test_equal_values_have_equal_digests
    person = Class.new { def initialize(name) = @name = name }
    reversed = { "b" => :c }.merge(a: [1, 2.0, nil])
    [[{ a: [1, 2.0, nil], "b" => :c }, reversed], [person.new("a"), person.new(+"a")],
     [%w[a a], [+"a", +"a"]], [Set[1, 2], Set[2, 1]],
     [[person.new([])] * 2, [person.new([]), person.new([])]], [proc {}, proc { 1 }]].each do |one, other|
      assert_equal digest(one), digest(other)
    end
    round = []
    round << round
    different = [1, 1.0, "1", :"1", [1], [[1]], %w[a b], %w[ab], { 1 => 2 }, { 2 => 1 }, 1..2, 1...2, nil,
                 Struct.new(:a).new(1), "é", "é".b, round, person.new("b"), person.new("a"), Time.at(1), Time.at(2),
                 RuntimeError.new("a"), RuntimeError.new("b"), Set[1]]
    assert_equal different.size, different.map { |value| digest(value) }.uniq.size
    assert_match(/\AHash \h{16}\z/, digest(reversed))
    assert_match(/\AString \h{16} \(of its first part\)\z/, digest("x" * 20_000_000))
  end

  # The first call is the one that all processes make in the same state.
  def test_the_first_value_is_the_one_digested
    assert_equal digest(1), assert_measured(code("$n = $n.to_i + 1", check: 1))["digest"].first
    text = "Benchmark.ips { |x| x.report('a') { |times| times } }"
    assert_equal digest(1), assert_measured(bench(text, "run", case: 0, check: 1))["digest"].first
  end

  # --- stubs ---

  def test_a_stubbed_method_does_nothing
    { 14 => "Slow#work", 16 => "Slow#hidden" }.each do |index, name|
      assert_operator assert_measured(brief("sweep.rb", index)).values("objects").first, :>, 0
      answer = assert_measured(brief("sweep.rb", index, stub: name, check: 1))
      assert_equal [0] * 3, answer.values("objects"), name
      assert_equal digest(nil), answer["digest"].first
    end
    assert_equal digest(nil), assert_measured(brief("sweep.rb", 15, stub: "Slow.make", check: 1))["digest"].first
    assert_equal digest(nil), assert_measured(code("'x' =~ /x/", stub: "String#=~", check: 1))["digest"].first
    { "Slow#gone" => /Slow#gone doesn't exist/, "Gone#work" => /Gone#work doesn't exist/,
      "work" => /names no method: Foo#bar or Foo\.bar/ }.each do |name, message|
      phase, kind, text = refused(brief("sweep.rb", 14, stub: name))
      assert_equal ["stub", "Pitwall::UsageError"], [phase, kind]
      assert_match message, text
    end
  end

  # --- files that are wrong ---

  def test_a_mistake_in_a_file_is_one_line
    { "x.report('a')" => /x\.report\("a"\) needs a block or a string of code/,
      "x.report('a') { }; x.report('a') { }" => /two cases are called "a": give each its own label/,
      "x.setup { }" => /x\.setup is known in Pitwall\.bench only/,
      "x.prelude 'x'" => /x\.prelude is not known here; known are x\.report/,
      "Benchmark.memory { }" => /Benchmark\.memory \(of benchmark-memory\) can't be measured by Pitwall/,
      "Benchmark.bm { }" => /Benchmark\.bm \(of benchmark\)/ }.each do |body, message|
      phase, kind, text, place = refused(bench("\nBenchmark.ips { |x|\n#{body} }"))
      assert_equal ["load", "Pitwall::UsageError"], [phase, kind]
      assert_match message, text
      assert_match(/own\.rb:[23]\z/, place)
    end
    { "x.param :n" => /needs values: x\.param :n, 10, 100, 1000/, "x.param 'a b', 1" => /a name such as :n/,
      "x.param :n, 1; x.param :n, 2" => /is there twice/,
      "x.growth :m; x.report('a') { }" => /add x\.param :m/ }.each do |body, message|
      assert_match message, refused(bench("Pitwall.bench { |x| #{body} }"))[2]
    end
    missing = bench("Pitwall.bench { |x| x.report('a') { |n:| n } }", "run", case: 0)
    assert_match(/there is no x\.param :n/, refused(missing)[2])
    assert_match(/needs a block/, refused(bench("Pitwall.bench"))[2])
  end

  def test_a_file_that_fails_to_load
    assert_equal ["load", "RuntimeError", "no\tway", "#{file("own.rb")}:2"], refused(bench("\nraise \"no\tway\""))
    assert_equal ["load", "SyntaxError"], refused(bench("def")).first(2)
    assert_equal ["load", "LoadError"], refused(child("list", "no-such-file.rb")).first(2)
    assert_equal ["load", "SystemExit", "exit was called (status 1): gone"], refused(bench("abort 'gone'")).first(3)
    # To end is no failure.
    assert_equal %w[case end], bench("Benchmark.ips { |x| x.report('a') { } }; exit").kinds
    assert_match(/case 0 was never reached/, refused(bench("exit", "run", case: 0))[2])
    raising = "Pitwall.bench { |x| x.setup { raise 'x' }; x.report('a') { } }"
    assert_equal "setup", refused(bench(raising, "run", case: 0)).first
  end

  def test_fields_are_escaped_and_in_utf_8
    text = "Pitwall.bench(\"a\\tb\\n\\\\\") { |x| x.param :k, 'a,b=c'; x.report(\"\\xff é\") { } }"
    answer = bench(text, env: { "LC_ALL" => "C" })
    assert_equal ["a\tb\n\\", "? é k=a;b=c", "k=a;b=c"], answer["case"][2, 3]
  end

  # --- cases that are wrong ---

  def bad(index, **keys) = brief("bad.rb", index, batch: 1, batches: 1, warmup: 1, **keys)

  def test_a_case_that_does_not_return_is_one_line
    place = File.join(FIXTURES, "bad.rb")
    { 0 => ["ArgumentError", "one\ttwo\\\nthree"], 1 => ["UncaughtThrowError", "uncaught throw :out"],
      2 => ["SystemExit", "exit was called (status 3)"], 3 => ["SystemExit", "exit was called (status 1): said"],
      4 => ["Interrupt", "signal SIGINT"], 5 => ["LocalJumpError", /break from proc/],
      6 => ["SystemExit", /\Aexit was called/], 7 => ["Pitwall::UsageError", /inside another block or case/],
      8 => ["NoMethodError", /\Aundefined method .no_such_method' for.*\z/],
      9 => ["SystemStackError", /stack level too deep/] }.each do |index, (kind, message)|
      answer = bad(index)
      found = refused(answer)
      assert_equal ["run", kind], found.first(2)
      assert_operator message, :===, found[2]
      assert_equal "#{place}:#{index + 8}", found[3]
      refute_match(/at exit/, answer.out)
    end
    assert_equal ["run", "RuntimeError", "in code", "code:2"], refused(bad(10))
  end

  def test_a_case_that_leaves_or_closes_the_pipe
    answer = bad(11)
    assert_equal [4, []], [answer.status.exitstatus, answer.kinds - %w[ready first warmup]]
    answer = bad(12)
    assert_equal 70, answer.status.exitstatus
    refute_includes answer.kinds, "done"
    assert_match(/closed the descriptor that its results go to/, answer.err)
  end

  def test_a_forked_child_says_nothing
    answer = assert_measured(bad(13))
    assert_equal [["forked"], 1], [answer.notes - %w[coarse_clock], answer.kinds.count("done")]
    answer = assert_measured(bad(14))
    assert_includes answer.notes, "forked"
    assert_equal answer.kinds.uniq.size, (answer.kinds - %w[values note]).size + 2
  end

  def test_cases_that_disturb_the_process
    assert_includes assert_measured(bad(15)).notes, "threads_left"
    assert_measured(bad(16))
    answer = assert_measured(bad(17, batch: 2))
    assert_match(/\A(?:printed)+\z/, answer.out)
  end

  def test_an_integer_that_cannot_add
    3.times { |index| assert_equal [0] * 3, assert_measured(brief("plus.rb", index)).values("objects") }
  end

  def test_a_wrong_call_of_the_child
    assert_equal ["load", "ArgumentError", "frob: list or run"], refused(child("frob", "ips.rb")).first(3)
    assert_equal ["load", "ArgumentError", "case= is missing"], refused(child("run", "plus.rb")).first(3)
    result = capture({}, RUBY, "--disable-gems", CHILD, "99", "list", File.join(FIXTURES, "plus.rb"))
    assert_equal ["pitwall: descriptor 99 is not open for writing: results go there\n", 1],
                 [result.err, result.status.exitstatus]
  end
end
