# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/own_walk"
require_relative "../support/recorded_program"
require "pitwall/cli"
require "stringio"

# Recording all the time: files that follow each other, in bounded room, over forks, obeying signals and the endpoint.
class ContinuousTest < Minitest::Test
  include RecordedProgram

  # Looks come every second: tests hurry them.
  HURRY = "Pitwall::Collect::Continuous.send(:remove_const, :LOOK_S); Pitwall::Collect::Continuous.const_set(:LOOK_S, 0.05)\n"
  LIVES = "Pitwall::Collect::Continuous.send(:remove_const, :FRESH_S); Pitwall::Collect::Continuous.const_set(:FRESH_S, 0.01)\n"

  def files = Dir[file("d/*.pit")].sort

  def in_folder = files.flat_map { |path| Pitwall::Record.read(path).segments }

  def test_files_follow_each_other
    run_program(HURRY + <<~RUBY)
      Pitwall.continuous(dir: "d", rate: 1000)
      3.times { burn(0.1); path = Pitwall::Collect::Session.path; Pitwall::Collect::Continuous.request(:rotate); sleep 0.01 while Pitwall::Collect::Session.path == path }
      burn(0.1)
    RUBY
    assert_equal 4, files.size
    assert_match(/\A\d{8}-\d{6}-\d+-1\.pit\z/, File.basename(files.first))
    segments = in_folder
    segments.each { |segment| assert_sane(segment) }
    assert_sampled("Object#burn", segments)
    assert_equal 0o700, File.stat(file("d")).mode & 0o777
    assert_equal 0o600, File.stat(files.first).mode & 0o777
    out = StringIO.new
    assert_equal 0, Pitwall::CLI.run(["report", file("d"), "--format", "json"], out: out, err: $stderr)
    assert_equal segments.map { |segment| segment.header.pid }, JSON.parse(out.string)["pids"]
  end

  # Each file has native frames, from its first sample on.
  def test_native_frames
    skip "own walks are not in use: #{OwnWalk.refusal}" if OwnWalk.refusal
    run_program(HURRY + <<~RUBY)
      [[{ native: 1 }, "native 1: choose true or false"],
       [{ native: true, mode: :safepoint }, "native: true goes with mode signal only: leave out mode safepoint"]].each do |settings, message|
        Pitwall.continuous(dir: "d", **settings)
        abort "not refused"
      rescue Pitwall::UsageError => error
        abort error.message unless error.message == "continuous: \#{message}"
      end
      Pitwall.continuous(dir: "d", rate: 1000, native: true)
      burn(0.1); path = Pitwall::Collect::Session.path; Pitwall::Collect::Continuous.request(:rotate); sleep 0.01 while Pitwall::Collect::Session.path == path
      burn(0.1)
      pid = fork { burn(0.1) }
      Process.wait(pid)
    RUBY
    segments = in_folder
    assert_equal 3, segments.size
    segments.each do |segment|
      assert_sane(segment)
      assert_equal "signal", segment.header.mode
      assert_operator segment.stat("native_stacks"), :>, 20
      refute_empty segment.shared_objects
      assert_includes segment.frames.each_value.select { |frame| frame.kind == Pitwall::Record::Frame::NATIVE }.map(&:name),
                      "vm_exec_core"
    end
  end

  # A look that has ended one file and not begun the next.
  def test_a_program_that_ends_amid_a_look
    run_program(HURRY + <<~RUBY)
      amid = false
      Pitwall::Collect::Continuous.singleton_class.prepend(Module.new { define_method(:open_file) { |now| amid ? (amid = :now; sleep 0.2) : nil; super(now) } })
      Pitwall.continuous(dir: "d", rate: 1000)
      burn(0.1)
      amid = true
      Pitwall::Collect::Continuous.request(:rotate)
      sleep 0.001 until amid == :now
    RUBY
    assert_equal %w[stop stop], in_folder.map { |segment| segment.tail&.fetch("reason") }
  end

  # Two workers that boot at once make the folder at the same time: mkdir finds it made meanwhile.
  def test_a_folder_that_another_worker_makes_first
    run_program(<<~RUBY)
      class << Dir
        alias first_mkdir mkdir
        def mkdir(path, *rest) = (first_mkdir(path, *rest); first_mkdir(path, *rest))
      end
      Pitwall.continuous(dir: "around/d", rate: 1000)
      burn(0.05)
    RUBY
    assert_equal 1, Dir[file("around/d/*.pit")].size
  end

  # Of a server that runs on: its last file is being written.
  def test_a_folder_that_is_being_written_to
    run_program(HURRY + <<~RUBY)
      written = ->(pid, n) { burn(0.02) until File.size?(Dir["d/*-\#{pid}-*.pit"].sort[n].to_s).to_i > 3000 }
      Pitwall.continuous(dir: "d", rate: 1000)
      written.(Process.pid, 0)
      Pitwall::Collect::Continuous.request(:rotate)
      written.(Process.pid, 1)
      killed = fork { written.(Process.pid, 0); Process.kill(:KILL, Process.pid) }
      Process.wait(killed)
      File.write("warnings", IO.popen([RbConfig.ruby, "-I\#{$LOAD_PATH.first}", "-e", 'require "pitwall/record"; Dir["d/*.pit"].sort.each { |path| puts Pitwall::Record.read(path).warnings.map(&:message) }'], &:read))
      File.write("killed", killed)
      File.write("living", Process.pid)
    RUBY
    pids = %w[living killed].to_h { |name| [name, File.read(file(name))] }
    assert_equal ["process #{pids["living"]} is still recording: complete to the last flush", "process #{pids["killed"]} ended without stop; complete to the last flush"].sort, File.readlines(file("warnings"), chomp: true).sort
  end

  def test_the_rate_is_as_asked
    run_program('Pitwall.continuous(dir: "d"); burn(1)')
    segment = in_folder.fetch(0)
    assert_equal 10_000_000, segment.header.interval_ns
    assert_operator segment.stat("captures"), :<=, 110 * segment.stat("elapsed_ns") / 1_000_000_000 * 3 # few threads
  end

  def test_workers_have_files_of_their_own
    run_program(HURRY + <<~RUBY)
      Pitwall.continuous(dir: "d", rate: 1000)
      pids = 2.times.map { |n| fork { Pitwall.label(worker: n) { burn(0.2) } } }
      pids.each { |pid| Process.wait(pid) }
      killed = fork { Pitwall.label(worker: :killed) { burn(10) } }
      sleep 0.02 until Dir["d/*-\#{killed}-*.pit"].any? { |path| File.size(path) > 3000 }
      Process.kill(:KILL, killed)
      Process.wait(killed)
    RUBY
    segments = in_folder
    assert_equal 4, segments.size
    labels = segments.flat_map { |segment| segment.label_sets.compact.filter_map { |set| set["worker"] } }
    assert_equal %w[0 1 killed], labels.sort
    assert_equal 1, segments.count { |segment| segment.tail.nil? }, "the killed one"
  end

  def test_all_processes_obey
    out = run_program(HURRY + <<~RUBY)
      Pitwall.continuous(dir: "d", rate: 1000)
      reader, writer = IO.pipe
      states = lambda { |wanted| limit = now + 120; sleep 0.02 until Pitwall.recording? == wanted || now > limit; Pitwall.recording? }
      child = fork { [true, false, true].each { |wanted| writer.puts("child \#{wanted} \#{states.(wanted)}"); writer.puts("."); sleep 0.02 until File.exist?("go\#{wanted ? 1 : 2}") || wanted == false } }
      reader.gets; reader.gets
      Pitwall::Collect::Continuous.request(:stop)
      puts "stopped \#{!states.(false)}"
      puts Pitwall::Collect::Continuous.status.values_at(:wanted, :recording).inspect
      File.write("go1", "")
      reader.gets.then { |line| puts line }
      reader.gets
      Pitwall::Collect::Continuous.request(:start)
      puts "started \#{states.(true)}"
      reader.gets.then { |line| puts line }
      Process.wait(child)
      puts File.read("d/control")
    RUBY
    assert_equal ["stopped true", '["stop", false]', "child false false", "started true", "child true true", "start 0"], out.lines.map(&:chomp)
  end

  def test_the_oldest_go_when_there_is_no_more_room
    run_program(HURRY + LIVES + <<~RUBY)
      Dir.mkdir("d")
      10.times { |n| File.binwrite("d/20200101-00000\#{n}-7-1.pit", "PITWALL 1\\n" + "x" * 2_000_000) }
      File.write("d/notes.txt", "mine")
      File.write("d/other.pit", "x" * 9_000_000)
      sleep 0.1
      Pitwall.continuous(dir: "d", rate: 1000, max_bytes: 16 << 20)
      limit = now + 120
      sleep 0.02 until Dir["d/2020*"].size <= 4 || now > limit
      5.times { Pitwall::Collect::Continuous.send(:look) } # no more go
    RUBY
    left = Dir.children(file("d")).sort
    assert_equal %w[notes.txt other.pit], left & %w[notes.txt other.pit]
    assert_equal %w[20200101-000006-7-1.pit 20200101-000007-7-1.pit 20200101-000008-7-1.pit 20200101-000009-7-1.pit], left.grep(/\A2020/)
  end

  def test_what_is_old_goes
    run_program(HURRY + LIVES + <<~RUBY)
      Dir.mkdir("d")
      2.times { |n| File.binwrite("d/2020010\#{n}-000000-7-1.pit", "PITWALL 1\\n") }
      File.utime(Time.now - 5000, Time.now - 5000, "d/20200100-000000-7-1.pit")
      sleep 0.1
      Pitwall.continuous(dir: "d", keep: 3600)
      limit = now + 120
      sleep 0.02 until Dir["d/2020*"].size <= 1 || now > limit
      5.times { Pitwall::Collect::Continuous.send(:look) } # no more go
    RUBY
    assert_equal %w[20200101-000000-7-1.pit], Dir.children(file("d")).grep(/\A2020/)
  end

  # A look a second, in every worker: it must not grow with what lies in the folder.
  def test_files_that_are_done_are_not_opened_again
    out = run_program(HURRY + LIVES + <<~RUBY)
      Dir.mkdir("d")
      30.times { |n| File.binwrite("d/202001\#{n + 10}-000000-7-1.pit", "PITWALL 1\n") }
      sleep 0.1
      opened = []
      File.singleton_class.prepend(Module.new { define_method(:open) { |path, *rest, **more, &block| opened << path if path.end_with?("-7-1.pit"); super(path, *rest, **more, &block) } })
      Pitwall.continuous(dir: "d")
      15.times { Pitwall::Collect::Continuous.send(:look) }
      Pitwall::Collect::Continuous.instance_variable_set(:@swept, nil)
      Pitwall::Collect::Continuous.send(:look)
      p opened.size
    RUBY
    assert_equal "30\n", out
  end

  def test_beginning_and_ending_again
    out = run_program(<<~RUBY)
      handlers = 0
      Pitwall::Collect::Continuous.define_singleton_method(:at_exit) { |&block| handlers += 1; super(&block) }
      4.times { Pitwall.continuous(dir: "d"); burn(0.02); Pitwall::Collect::Continuous.end }
      p handlers
    RUBY
    assert_equal "1\n", out
    assert_equal 4, files.size
  end

  # On Rubies where being told of collections makes every allocation slower they are left out, and the views say so.
  def test_collections_where_they_cost_nothing
    [nil, true, false].each do |gc|
      dir = file("gc-#{gc.inspect}")
      run_program("Pitwall.continuous(dir: #{dir.inspect}, rate: 1000#{", gc: #{gc}" unless gc.nil?}); 5.times { GC.start; burn(0.02) }")
      recorded = gc.nil? ? RUBY_VERSION >= "3.3" : gc
      out = StringIO.new
      assert_equal 0, Pitwall::CLI.run(["report", dir, "--view", "gc"], out: out, err: $stderr)
      recorded ? assert_match(/^\d+ runs \(/, out.string) : assert_match(/runs were not recorded/, out.string)
      assert_equal recorded, out.string.lines.grep(/garbage collection is not told apart/).empty?
    end
  end

  # The room for the file that is being written ends: the next begins, and no file grows beyond its part.
  def test_a_file_that_is_too_large_is_followed
    run_program(HURRY + <<~RUBY)
      Pitwall::Collect::Continuous.send(:define_singleton_method, :share) { 20_000 }
      Pitwall.continuous(dir: "d", rate: 10_000)
      deadline = now + 120
      (burn(0.01); sleep 0.01) until Dir["d/*.pit"].size > 2 || now > deadline
    RUBY
    assert_operator files.size, :>, 2
  end

  # Stacks that are ever new fill files fast.
  BURST = <<~RUBY
    eval((0...40).map { |n| "def way\#{n}(d) = d.zero? ? burn(0.0001) : send(WAYS.sample, d - 1)" }.join("\n"))
    WAYS = (0...40).map { |n| :"way\#{n}" }
  RUBY

  # However fast it grows and however late one looks.
  def test_a_file_ends_with_its_part
    run_program("Pitwall::Collect::Continuous.send(:remove_const, :LOOK_S); Pitwall::Collect::Continuous.const_set(:LOOK_S, 1000)\n" + BURST + <<~RUBY)
      Pitwall::Collect::Continuous.send(:define_singleton_method, :share) { 400_000 }
      Pitwall.continuous(dir: "d", rate: 10_000)
      sent = now + 120
      way0(60) until now > sent || Pitwall::Native.limit(400_000)
      abort "never full" unless Pitwall::Native.limit(400_000)
      200.times { way0(60) }
      exit!(0)
    RUBY
    assert_equal 1, files.size
    assert_operator File.size(files.first), :<=, 400_000
    assert_operator in_folder.first.row_count, :>, 0
  end

  # Files that have just ended count, and go, like older ones.
  def test_the_folder_keeps_its_bound_in_a_burst
    out = run_program(HURRY + BURST + <<~RUBY)
      Pitwall.continuous(dir: "d", rate: 10_000)
      Pitwall::Collect::Continuous.instance_variable_get(:@settings)[:max_bytes] = 150_000
      written, most = {}, 0
      sent = now + 120
      until written.sum { |_, bytes| bytes } > 600_000 || now > sent
        5.times { way0(60) }
        sizes = Dir["d/*.pit"].to_h { |path| [path, File.size?(path).to_i] }
        written.merge!(sizes)
        most = [most, sizes.sum { |_, bytes| bytes }].max
      end
      puts written.sum { |_, bytes| bytes }, most
    RUBY
    written, most = out.split.map(&:to_i)
    assert_operator written, :>, 600_000
    assert_operator most, :<=, 150_000 + 75_000 # what is about to be removed
  end

  # /dev/full stands for the full disk: opening works, writing doesn't.
  def test_a_full_disk_is_one_line_and_the_program_goes_on
    result = attempt(HURRY + <<~RUBY)
      Process.setrlimit(:FSIZE, 30_000)
      Pitwall.continuous(dir: "d", rate: 10_000, rotate: 3600)
      deadline = now + 120
      Thread.new { sleep 0.001 while true }
      burn(0.02) until !Pitwall.recording? || now > deadline
      Process.setrlimit(:FSIZE, 0, 30_000)
      Pitwall::Collect::Continuous.instance_variable_set(:@retry_at, 0) # it is tried again
      burn(0.02) until Pitwall::Collect::Continuous.instance_variable_get(:@retry_at) > 0 || now > deadline
      Process.setrlimit(:FSIZE, 30_000, 30_000)
      puts "alive", Dir["d/*.pit"].size
    RUBY
    assert_equal "alive\n1\n", result.out
    assert_predicate result.status, :success?
    assert_equal 1, result.err.lines.size, result.err
    assert_match(/\Apitwall: continuous recording stopped, to be tried again: .*\.pit: File too large; what was written is kept$/, result.err)
    assert_operator in_folder.first.row_count, :>, 0
    assert_equal [:unwritten], Pitwall::Record.read(Dir[file("d/*.pit")].first).warnings.map(&:code)
  end

  def test_bad_settings
    { 'dir: "d", rate: 0' => "UsageError: continuous: rate 0: choose 1 to 10_000 samples a second",
      'dir: "d", max_bytes: 5' => "UsageError: continuous: max_bytes 5: choose 16777216 or more",
      'dir: "d", keep: nil' => "UsageError: continuous: keep nil: choose seconds, 10 or more",
      'dir: "d", keep: "24h"' => 'UsageError: continuous: keep "24h": choose seconds, 10 or more',
      'dir: "d", rotate: Float::INFINITY' => "UsageError: continuous: rotate Infinity: choose seconds, 10 or more",
      'dir: "d", rotate: Float::NAN' => "UsageError: continuous: rotate NaN: choose seconds, 10 or more",
      'dir: "d", mode: "none"' => 'UsageError: continuous: mode "none": choose auto or outside or signal or safepoint',
      'dir: ""' => 'UsageError: continuous: dir "": name a folder', "dir: nil" => "UsageError: continuous: dir nil: name a folder",
      'dir: "d", control: "abc"' => 'UsageError: continuous: control "abc": choose a port, 1 to 65535, or 0 for a free one',
      'dir: "d", control: 70_000' => "UsageError: continuous: control 70000: choose a port, 1 to 65535, or 0 for a free one",
      'dir: "d", growth: 1' => "UsageError: continuous: growth 1: choose true or false",
      'dir: "d", growth: true, one_in: 0' => "UsageError: continuous: one_in 0: choose a whole number from 1",
      'dir: "d", color: 1' => "UsageError: continuous: unknown setting color: known are dir, rate, rotate, keep, max_bytes, mode, signal, gc, growth, one_in, native",
      'dir: "/dev/null/x"' => "UsageError: continuous: /dev/null/x: Not a directory: name another folder",
      'dir: "d", signal: "USR1"' => "UsageError: signal \"USR1\": choose URG or WINCH (signals that are ignored by default), or mode safepoint" }.each do |settings, message|
      assert_equal message, run_program("print problem { Pitwall.continuous(#{settings}) }")
      assert_empty files, settings
    end
    assert_equal "StateError: already recording to #{file("a.pit")}: stop that first", run_program('start; print problem { Pitwall.continuous(dir: "d") }; stop')
  end

  # Workers that leak and one that does not, each in its file, which no clock ends unless that was asked for.
  def test_objects_that_stay_and_grow
    run_program(HURRY + <<~RUBY)
      Pitwall.continuous(dir: "d", growth: true, one_in: 1)
      LEAK, FULL = [], {}
      leak = ->(round) { 20.times { LEAK << "leaked " * 9 } }
      fill = ->(round) { 20.times { |i| FULL[i] = "kept" * 9 } }
      pids = [leak, leak, fill].map do |work|
        fork do
          60.times do |round|
            work.call(round)
            Array.new(200) { "garbage" * 9 }
            round % 3 == 0 ? GC.start : GC.start(full_mark: false)
            sleep 0.003
          end
        end
      end
      pids.each { |pid| Process.wait(pid) }
      raise unless Pitwall::Collect::Continuous.instance_variable_get(:@settings)[:rotate] == 86_400
    RUBY
    out = StringIO.new
    # The clock must not say which collections are judged: a busy machine may halt a process for most of its time.
    assert_equal 0, Pitwall::CLI.run(["report", file("d"), "--view", "growth", "--warmup", "1us", "--format", "json"], out: out, err: $stderr)
    assert_equal [["String", 2]], JSON.parse(out.string)["sites"].map { |site| site.values_at("class", "processes") }
  end

  # Numbers of any kind are seconds and bytes; so are durations that say that they are numbers.
  def test_settings_that_are_numbers
    run_program(<<~RUBY)
      duration = Class.new { def is_a?(other) = 600.is_a?(other); def method_missing(...) = 600.public_send(...); def respond_to_missing?(*) = true }.new
      Pitwall.continuous(dir: "made/on/the/way", keep: duration, rotate: 90.5, max_bytes: 1e9, mode: :safepoint)
      raise unless Pitwall::Collect::Continuous.instance_variable_get(:@settings).values_at(:keep, :rotate, :max_bytes) == [600, 90, 1_000_000_000]
      burn(0.02)
    RUBY
    assert_equal 0o700, File.stat(file("made/on/the/way")).mode & 0o777
    assert_equal 0o777 & ~File.umask, File.stat(file("made")).mode & 0o777
    assert_equal ["safepoint", "asked for"], Pitwall::Record.read(Dir[file("made/on/the/way/*.pit")].first).segments.first.header.then { |header| [header.mode, header.mode_reason] }
  end

  def test_why_it_is_that_mode
    run_program('Pitwall.continuous(dir: "d"); burn(0.02)')
    header = in_folder.first.header
    assert_equal [RUBY_VERSION >= "3.2" ? "signal" : "safepoint", "what continuous recording takes unasked"], [header.mode, header.mode_reason]
  end

  def test_signals_that_are_free
    run_program(<<~RUBY)
      Pitwall.on_signal("TTOU")
      2.times do |n|
        Process.kill(:TTOU, Process.pid)
        burn(0.001) until Pitwall.recording?
        burn(0.1)
        Process.kill(:TTOU, Process.pid)
        burn(0.001) while Pitwall.recording?
      end
    RUBY
    recordings = Dir[file(".pitwall/*.pit")]
    assert_equal 2, recordings.size
    recordings.each { |path| assert_sampled("Object#burn", Pitwall::Record.read(path).segments) }
  end

  def test_signals_that_are_taken_stay
    out = run_program(<<~RUBY)
      trap("USR2") { puts "mine" }
      puts problem { Pitwall.on_signal("USR2") }
      Process.kill(:USR2, Process.pid)
      sleep 0.1
      start(mode: :signal)
      puts problem { Pitwall.on_signal("URG") }
      stop
      puts problem { Pitwall.on_signal("KILL") }
      puts problem { Pitwall.on_signal("NOPE") }
      puts problem { Pitwall.on_signal("USR1", :dance) }
      Pitwall.on_signal("SIGUSR1", :rotate)
    RUBY
    assert_equal ["CannotMeasure: signal USR2 is already handled by the program: choose another", "mine",
                  "CannotMeasure: signal URG is already handled by the program: choose another"], out.lines.first(3).map(&:chomp)
    assert_match(/UsageError: on_signal: KILL: /, out.lines[3])
    assert_equal ["UsageError: on_signal: there is no signal NOPE", "UsageError: on_signal: :dance: choose toggle, start, stop, rotate"], out.lines.drop(4).map(&:chomp)
  end
end
