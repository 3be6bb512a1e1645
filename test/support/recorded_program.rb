# frozen_string_literal: true

require_relative "command_line"
require "pitwall/record"
require "pitwall/analyse/tree/call_tree_builder"
require "pitwall/analyse/tree/flat"
require "pitwall/analyse/threads/threads"

# Programs that record themselves, each in a process of its own: a crash of the sampler must not take the suite along,
# and signals, forks, limits and closed streams must not touch it.
module RecordedProgram
  include CommandLine

  # What every such program has at hand. CPU time, not wall time: a program on a busy machine gets its samples all the same.
  PRELUDE = <<~RUBY
    require "rbconfig"
    require "pitwall"
    $stdout.sync = true
    SETTINGS = eval(ENV.fetch("TEST_SETTINGS", "{}"))

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    def cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)

    # Computes until the calling thread has used so much CPU time.
    def burn(seconds)
      limit = cpu + seconds
      nil while cpu < limit
    end

    def start(name = "a.pit", **settings) = Pitwall.start(record: name, **SETTINGS, **settings)
    def stop = Pitwall.stop
    def record(name = "a.pit", **settings, &block) = Pitwall.profile(record: name, **SETTINGS, **settings, &block)

    # Burns until what came before is in the file, names included: they come with a later flush. On a busy machine a flush
    # may be seen in several pieces, so say which method's name has to be there. (In a compressed chunk it is not found:
    # so many pieces are enough in any case.)
    def flushed(name = "a.pit", method: nil)
      grown = lambda do
        size = File.size?(name).to_i
        burn(0.01) while File.size?(name).to_i <= size
      end
      2.times { grown.call }
      15.times { File.binread(name).include?(method) ? break : grown.call } if method
      grown.call
    end

    # What went wrong, as "Class: message".
    def problem
      yield
      "nothing"
    rescue Pitwall::Error => error
      "\#{error.class.name.split("::").last}: \#{error.message}"
    end
  RUBY

  # Settings of every recording in the program (besides what the program says itself).
  #: () -> Hash[Symbol, untyped]
  def settings = {}

  # Options of the measured Ruby, e.g. `--yjit`.
  def ruby_options = ENV.fetch("TEST_RUBY_OPTIONS", "").split

  # The words of the command that runs a program.
  def command(source, options: [])
    File.write(file("prelude.rb"), PRELUDE)
    File.write(file("program.rb"), source)
    [RUBY, "--disable-gems", *ruby_options, "-I#{ENV["TEST_LIB"] || File.join(Checkout::ROOT, "lib")}", *options, "-r./prelude.rb", "program.rb"]
  end

  # TEST_PRELOAD is a library that only the measured Ruby gets, e.g. a sanitizer's.
  def environment(env)
    preload = ENV["TEST_PRELOAD"] ? { "LD_PRELOAD" => ENV["TEST_PRELOAD"] } : {}
    CLEAN.merge("TEST_SETTINGS" => settings.inspect).merge(preload, env)
  end

  # Far beyond what any of these programs needs, on the busiest machine.
  PATIENCE = 300

  # What the address sanitizer says of each program that changes stacks itself.
  SANITIZERS_NOTE = /^==\d+==WARNING: ASan doesn't fully support makecontext.*\n/.freeze

  # The program did not do its work: it crashed, complained or hung. No test is tried again for that (test/support/test_worker.rb).
  Broken = Class.new(Minitest::Assertion)

  # Runs a program to its end, whatever that is. One that hangs is ended, with all that it started, and fails the test.
  #: (String, ?env: Hash, ?stdin: String, ?wrapper: Array[String], ?options: Array[String]) -> CommandLine::Result
  def attempt(source, env: {}, stdin: "", wrapper: [], options: [], patience: PATIENCE)
    File.binwrite(file("stdin"), stdin)
    streams = { in: file("stdin"), out: file("stdout"), err: file("stderr"), chdir: @dir, pgroup: true }
    pid = Process.spawn(environment(env), *wrapper, *command(source, options: options), streams)
    status = wait_for(pid, patience)
    out, err = %w[stdout stderr].map { |name| File.binread(file(name)).force_encoding(Encoding::UTF_8) }
    err = err.sub(SANITIZERS_NOTE, "")
    raise Broken, "hung for #{patience} s:\n#{out}\n#{err}\n#{@where}" unless status
    CommandLine::Result.new(out, err, status)
  end

  def wait_for(pid, patience)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + patience
    until (done = Process.wait2(pid, Process::WNOHANG))
      if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
        @where = where_it_stands(pid)
        Process.kill(:KILL, -pid)
        Process.wait(pid)
        return nil
      end
      sleep 0.005
    end
    done.last
  end

  # What every thread of a process waits for: its native stack, where there is a debugger.
  def where_it_stands(pid)
    threads = Dir["/proc/#{pid}/task/*/{comm,wchan}"].map { |name| "#{name}: #{File.read(name).strip}" }.join("\n")
    stacks, = Open3.capture2e("gdb", "-p", pid.to_s, "-batch", "-ex", "thread apply all backtrace 16")
    "#{threads}\n#{stacks}"
  rescue SystemCallError
    threads
  end

  # Runs a program that has to succeed, and say nothing on standard error.
  #: (String, **untyped) -> String  its standard output
  def run_program(source, **options)
    result = attempt(source, **options)
    raise Broken, "#{result.status}\n#{result.out}\n#{result.err[0, 4000]}" unless result.status.success? && result.err.empty?

    pass
    result.out
  end

  # --- what a recording says ---

  # Time of which a reader on another core can't say whose it was, as others had that core.
  #: () -> Integer
  def late(one = segment) = one.header.mode == "outside" ? one.stat("missed_ticks") * one.header.interval_ns : 0

  def read(name = "a.pit") = Pitwall::Record.read(file(name))

  def segment(name = "a.pit") = read(name).segments.fetch(0)

  def tree(segments) = Pitwall::Analyse::CallTreeBuilder.build(Array(segments))

  # Rows of the flat view by the method's name; of several with one name, the heaviest.
  #: (Array[Record::Segment] | Record::Segment, ?Symbol) -> Hash[String, Analyse::Flat::Row]
  def methods_of(segments, weight = :wall)
    Pitwall::Analyse::Flat.rows(tree(segments), weight).reverse.to_h { |row| [row.method.name, row] }
  end

  def threads_of(segments) = Pitwall::Analyse::Threads.rows(Array(segments))

  # Where a recording is, that some samples of a method are in.
  def assert_sampled(name, segments)
    rows = methods_of(segments, :captures)
    assert rows.key?(name), "no #{name} in #{rows.keys.inspect}"
    assert_operator rows.fetch(name).total, :>, 0, name
  end

  def refute_sampled(name, segments) = refute_includes(methods_of(segments).keys, name)

  # What holds of every recording that was stopped, whatever was recorded.
  def assert_sane(segment)
    assert segment.tail, "no TAIL"
    assert_empty segment.parents.each_with_index.select { |parent, id| parent >= id && id.positive? }, "nodes before their parents"
    assert_empty segment.frames.values.map(&:name).grep(/unresolved/)
    assert_equal segment.stat("threads"), segment.threads.size, "THRD rows"
    assert_empty segment.tallies.map(&:thread_id).uniq - segment.threads.keys
    assert_equal 0, segment.stat("write_error")
    # No gaps: a thread's rows add up to its life, and no thread lived longer than the recording. (Its CPU time is read at every
    # eighth sample and guessed between, so the last rows may be a time slice of the kernel ahead on a busy machine.)
    elapsed = segment.stat("elapsed_ns")
    threads_of(segment).each do |row|
      assert_operator row.wall, :<=, elapsed + segment.unit_ns * 2, "wall of #{row.name}"
      assert_operator row.cpu, :<=, segment.stat("process_cpu_ns") + 50_000_000, "CPU of #{row.name}"
    end
  end
end
