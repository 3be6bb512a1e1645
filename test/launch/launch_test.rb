# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require "minitest/mock"
require "pitwall/launch"
require "pitwall/launch/control"
require "pitwall/launch/destination"
require "pitwall/launch/parts"
require "pitwall/launch/target_environment"

class LaunchTest < Minitest::Test
  include CommandLine

  Launch = Pitwall::Launch

  def launch(*command, **options) = Launch.new(command, in: File::NULL, out: file("out"), **options).call

  def out = File.read(file("out"))

  # --- starting ---

  def test_it_tells_what_became_of_the_command
    finished = launch("sh", "-c", "exit 3")
    assert_equal 3, finished.status.exitstatus
    assert_operator finished.wall_ns, :>, 0
    assert_operator finished.pid, :>, 1
  end

  def test_cpu_time_counts_the_processes_it_waited_for
    busy = launch(RUBY, "-e", "#{CommandLine.busy(0.2)} system(#{RUBY.dump}, '-e', #{CommandLine.busy(0.2).dump})")
    idle = launch("sleep", "0.2")
    assert_operator busy.cpu_ns, :>, idle.cpu_ns * 2
    assert_operator idle.wall_ns, :>=, 200_000_000
  end

  def test_a_lone_word_is_no_shell_line
    error = assert_raises(Launch::NotFound) { launch("echo a") }
    assert_equal 127, error.status
    assert_equal "echo a: command not found; write the command without quotes: -- echo a", error.message
  end

  def test_what_can_not_be_started
    assert_match(/\Anosuch: command not found\z/, assert_raises(Launch::NotFound) { launch("nosuch") }.message)
    File.write(file("plain.rb"), "p 1")
    { file("plain.rb") => /chmod \+x/, @dir => /folder/ }.each do |path, message|
      error = assert_raises(Launch::NotExecutable) { launch(path) }
      assert_equal 126, error.status
      assert_match message, error.message
    end
    File.write(file("bad"), "#!/no/such/interpreter\n")
    File.chmod(0o755, file("bad"))
    assert_match(/interpreter/, assert_raises(Launch::NotExecutable) { launch(file("bad")) }.message)
  end

  def test_inherited_files_stay_open
    File.open(file("extra"), "w") do |io|
      io.close_on_exec = false
      launch(RUBY, "-e", "IO.for_fd(#{io.fileno}).puts('through')") # sh knows descriptors up to 9 only
    end
    assert_equal "through\n", File.read(file("extra"))
  end

  # --- signals ---

  def relay_to(trap_lines, *signals)
    program = "#{trap_lines}; File.write(#{file("ready").dump}, '1'); sleep 20; exit 1"
    sender = Thread.new do
      eventually { File.exist?(file("ready")) }
      signals.each { |signal| Process.kill(signal, Process.pid) }
    end
    launch(RUBY, "-e", program).tap { sender.join }
  end

  def test_signals_reach_the_command
    %w[TERM HUP USR1 USR2].each do |signal|
      FileUtils.rm_f(file("ready"))
      before = trap(signal, "SYSTEM_DEFAULT") # under nohup it would be ignored, and stay so
      finished = relay_to("trap(#{signal.dump}) { exit 42 }", signal)
      assert_equal 42, finished.status.exitstatus, signal
    ensure
      trap(signal, before || "DEFAULT")
    end
  end

  def test_a_signal_the_command_does_not_handle_kills_it
    finished = relay_to("trap('TERM', 'SYSTEM_DEFAULT')", "TERM")
    assert_equal 15, finished.status.termsig
  end

  def test_an_interrupt_is_passed_on_where_no_terminal_does
    skip "runs in the foreground of a terminal" if File.open("/dev/tty") { true } rescue false
    assert_equal 43, relay_to("trap('INT') { exit 43 }", "INT").status.exitstatus
  end

  def test_handlers_are_put_back
    mine = proc {}
    before = trap("USR1", mine)
    launch("true")
    assert_same mine, trap("USR1", before || "DEFAULT")
  end

  def test_the_command_starts_with_default_handlers_and_keeps_what_was_ignored
    program = "trap '' HUP; exec #{RUBY} -I#{Checkout::ROOT}/lib -e 'require \"pitwall/launch\"; " \
              "Pitwall::Launch.new(%w[grep -E Sig(Ign|Cgt|Blk) /proc/self/status]).call'"
    lines, = Open3.capture2(CLEAN, "sh", "-c", program)
    masks = lines.scan(/(\w+):\s+(\h+)/).to_h.transform_values(&:hex)
    assert_equal [0, 1], masks.values_at("SigBlk", "SigIgn") # 1 is HUP
  end

  # A shell starts a script's background job with INT and QUIT ignored. A program with a handler gets the signals
  # nevertheless.
  def test_signals_that_are_ignored_from_outside_reach_a_handler
    { "trap('INT') { exit 43 }" => 43, "trap('QUIT') { exit 44 }" => 44, "" => 5 }.each do |handler, status|
      ready = file("ready")
      FileUtils.rm_f(ready)
      program = "#{handler}; File.write(#{ready.dump}, '1'); sleep #{handler.empty? ? 0.5 : 60}; exit 5"
      File.write(file("program.rb"), program)
      script = <<~SH
        "$@" & child=$!
        until [ -e #{ready} ]; do sleep 0.01; done
        kill -INT $child; kill -QUIT $child 2>/dev/null # the program may have ended at the first signal
        wait $child; echo $?
      SH
      alone = ["sh", "-c", script, "sh", RUBY, file("program.rb")]
      command = ["profile", "--quiet", "--record", file("x.pit"), "--", RUBY, file("program.rb")]
      profiled = ["sh", "-c", script, "sh", RUBY, *START, *command]
      [alone, profiled].each do |words|
        FileUtils.rm_f(ready)
        assert_equal ["#{status}\n", ""], Open3.capture3(CLEAN, *words).first(2), [handler, words]
      end
    end
  end

  # --- the environment ---

  def environment(bootstrap, outer = {})
    options = { interval_ns: 5, mode: "signal" }
    Launch::TargetEnvironment.new(parts: "/p a/parts", options: options, bootstrap: bootstrap).to_h(outer)
  end

  def test_the_environment
    assert_equal({ "PITWALL_PARTS" => "/p a/parts", "PITWALL_OPTIONS" => "interval_ns=5;mode=signal",
                   "RUBYOPT" => "-r/lib/pitwall/collect/bootstrap" },
                 environment("/lib/pitwall/collect/bootstrap.rb"))
  end

  def test_the_users_rubyopt_stays_and_an_outer_bootstrap_goes
    outer = { "RUBYOPT" => "-w -r/x/pitwall/collect/bootstrap  -r/tmp/pitwall-0/ab/pitwall_boot -rset" }
    assert_equal "-r/lib/b -w -rset", environment("/lib/b.rb", outer)["RUBYOPT"]
  end

  def test_a_path_with_spaces_is_reached_through_a_link_that_stays
    bootstrap = file("a space.rb")
    File.write(bootstrap, "")
    options = Array.new(2) { environment(bootstrap)["RUBYOPT"] }
    assert_equal 1, options.uniq.size
    link = "#{options.first.delete_prefix("-r")}.rb"
    refute_match(/\s/, link)
    assert_equal bootstrap, File.readlink(link)
    assert_equal 0, File.stat(File.dirname(link, 2)).mode & 0o077
  ensure
    FileUtils.rm_rf(File.dirname(link)) if link
  end

  # --- where to ---

  def destination(command = %w[ruby x.rb], **options) = Dir.chdir(@dir) { Launch::Destination.new(command, **options) }

  NOON = Time.new(2026, 11, 21, 12, 0, 0)

  def test_the_default_is_a_dated_file_in_a_folder_that_git_ignores
    place = destination(now: NOON)
    assert_equal file(".pitwall/20261121-120000-x.pit"), place.recording
    assert_equal file(".pitwall/20261121-120000-x.parts"), place.parts
    assert_equal 0o700, File.stat(place.parts).mode & 0o777
    assert_equal "*\n", File.read(file(".pitwall/.gitignore"))
    assert_empty place.notes
  end

  def test_names_come_from_the_command
    { %w[bundle exec rails runner 1] => "rails", %w[bin/rake test] => "rake", %w[/usr/bin/ruby3.1 -Ilib x.rb] => "x",
      %w[env A=1 ruby -w a/b\ c.rb] => "b-c", %w[ruby -e puts] => "ruby",
      %w[ruby -I lib -Itest -r json test/x.rb] => "x", %w[ruby -w -I lib:test -C sub -ne puts] => "ruby",
      %w[ruby -rdate x.rb] => "x",
      ["/"] => "command", ["ruby"] => "ruby" }.each do |command, name|
      assert_equal "20261121-120000-#{name}.pit", File.basename(destination(command, now: NOON).recording)
      FileUtils.rm_rf(file(".pitwall"))
    end
  end

  def test_two_recordings_of_one_second_differ
    first, second = Array.new(2) { destination(now: NOON) }
    refute_equal first.recording, second.recording
    Dir.rmdir(first.parts)
    File.write(first.recording, "PITWALL 1\n")
    refute_equal first.recording, destination(now: NOON).recording
  end

  def test_an_unwritable_folder_falls_back_to_a_temporary_one_and_says_so
    File.write(file(".pitwall"), "a file is in the way")
    place = destination
    refute place.recording.start_with?(@dir)
    folder = Regexp.escape(File.dirname(place.recording))
    assert_match(%r{\A\.pitwall/ can't be written here \(.+\): recording to #{folder}/\z}, place.notes.first)
    place.discard
    refute File.exist?(File.dirname(place.recording))
  end

  def test_a_named_recording
    place = destination(file: "out.pit")
    assert_equal [file("out.pit"), file("out.parts")], [place.recording, place.parts]
    refute File.exist?(file("out.pit"))
  end

  def test_a_place_that_cannot_be_written_is_refused_at_once
    File.write(file("precious.rb"), "puts 1\n" * 10)
    { "no/such/dir/x.pit" => /No such file/, "precious.rb" => /is not a recording/, @dir => /./,
      "/proc/x.pit" => /cannot write/ }.each do |path, message|
      error = assert_raises(Pitwall::UsageError, path) { destination(file: path) }
      assert_match message, error.message
      refute_includes error.message, "\n"
    end
    assert_equal "puts 1\n" * 10, File.read(file("precious.rb"))
    refute Dir.exist?(file("precious.rb.parts"))
  end

  def test_a_full_disk_is_said_before_the_command_runs_and_costs_no_older_recording
    File.write(file("x.pit"), "PITWALL 1\nolder")
    %w[x.pit y.pit].each do |name|
      error = assert_raises(Pitwall::UsageError) { limited(4000) { destination(file: name) } } # less than what is tried
      assert_equal ["cannot write #{name}: File too large", { another_recording: nil }], [error.message, error.advice]
    end
    assert_equal "PITWALL 1\nolder", File.read(file("x.pit"))
    assert_equal %w[.tmp x.pit], Dir.children(@dir).sort
  end

  def test_a_name_that_leaves_no_room_for_that_of_a_folder
    name = "#{"x" * 251}.pit"
    place = destination(file: name)
    assert_equal file(name), place.recording
    refute place.parts.start_with?(@dir)
    place.discard
  end

  # --- parts ---

  def parts(files)
    path = file("x.parts")
    Dir.mkdir(path)
    files.each { |name, content| File.binwrite(File.join(path, name), content) }
    Launch::Parts.new(path)
  end

  def test_parts_are_joined_the_commands_own_first
    parts = parts("9-0.pit" => "a", "12-1.pit" => "d", "12-0.pit" => "c", "7-0.pit" => "", "10-0.pit" => "b")
    merged = parts.merge_into(file("x.pit"), first: 12)
    assert_equal "cdab", File.read(file("x.pit"))
    assert_equal [4, [], 0, nil, false], merged.to_a
    refute File.exist?(file("x.parts"))
  end

  def test_an_older_recording_is_replaced_through_its_link
    File.write(file("real.pit"), "older and longer")
    parts("1-0.pit" => "a", "2-0.pit" => "b").merge_into(file("real.pit"), first: 1)
    assert_equal "ab", File.read(file("real.pit"))
  end

  def test_a_part_still_being_written_is_left_and_named
    folder = parts("1-0.pit" => "a", "2-0.pit" => "b")
    File.open(file("x.parts/2-0.pit")) do |io|
      io.flock(File::LOCK_EX)
      merged = folder.merge_into(file("x.pit"), first: 1)
      assert_equal [1, [2]], [merged.count, merged.living]
    end
    assert_equal "a", File.read(file("x.pit"))
    assert_equal "b", File.read(file("x.parts/2-0.pit"))
  end

  def test_what_does_not_fit_is_counted_and_kept
    merged = parts("1-0.pit" => "aaa", "2-0.pit" => "bb").merge_into("/dev/full", first: 1)
    assert_equal [0, [], 5], merged.to_a.first(3)
    assert_match(/No space left/, merged.problem)
    assert_equal %w[1-0.pit 2-0.pit], Dir.children(file("x.parts")).sort
  end

  # With a limit on the size of files, which fails as a full disk does.
  def limited(bytes)
    handler = trap("XFSZ") { nil }
    before = Process.getrlimit(:FSIZE)
    Process.setrlimit(:FSIZE, bytes, before[1])
    yield
  ensure
    Process.setrlimit(:FSIZE, *before)
    trap("XFSZ", handler || "DEFAULT")
  end

  # A file that is a mount, or in a folder that may not be written.
  def in_place(&block) = File.stub(:rename, ->(*) { raise Errno::EBUSY }, &block)

  def test_an_older_recording_is_replaced_in_place
    ["old", "older and much longer", ""].each do |older|
      File.write(file("x.pit"), older)
      merged = in_place { parts("1-0.pit" => "first", "2-0.pit" => "second").merge_into(file("x.pit"), first: 1) }
      assert_equal [2, [], 0, nil, false], merged.to_a
      assert_equal "firstsecond", File.read(file("x.pit"))
      refute File.exist?(file("x.parts"))
    end
  end

  def test_an_older_recording_stays_where_the_new_one_does_not_fit
    File.write(file("x.pit"), "older" * 20)
    merged = limited(150) { in_place { parts("1-0.pit" => "n" * 51).merge_into(file("x.pit"), first: 1) } }
    assert_equal [0, [], 51, "File too large", true], merged.to_a
    assert_equal "older" * 20, File.read(file("x.pit"))
    assert_equal "n" * 51, File.read(file("x.parts/1-0.pit"))
  end

  def test_parts_of_another_file_system
    second = File.directory?("/dev/shm") && File.stat("/dev/shm").dev != File.stat(@dir).dev
    skip "needs a second file system: /dev/shm" unless second
    Dir.mktmpdir("pitwall-", "/dev/shm") do |shm|
      { 150 => [[1, nil, false], "n" * 51, []],
        50 => [[0, "File too large", true], "older", ["1-0.pit"]] }.each do |limit, (expected, recording, left)|
        Dir.mkdir("#{shm}/#{limit}")
        File.write(file("x.pit"), "older")
        File.write("#{shm}/#{limit}/1-0.pit", "n" * 51)
        merged = limited(limit) { Launch::Parts.new("#{shm}/#{limit}").merge_into(file("x.pit"), first: 1) }
        assert_equal expected, merged.to_a.values_at(0, 3, 4)
        assert_equal recording, File.read(file("x.pit"))
        assert_equal left, Dir["#{shm}/#{limit}/*"].map { |path| File.basename(path) }
        assert_equal %w[.tmp x.pit], Dir.children(@dir).sort
      end
    end
  end

  def test_nothing_written
    merged = parts({}).merge_into(file("x.pit"), first: 1)
    refute merged.any?
    refute File.exist?(file("x.pit"))
  end

  def test_messages_are_told_once
    assert_equal %w[a b], parts("messages" => "a\nb\n\na\n").messages
    FileUtils.rm_rf(file("x.parts"))
    assert_equal ["a\uFFFDb"], parts("messages" => "a\xFFb\n".b).messages
  end

  # --- control ---

  def test_the_control_run_reads_the_same_input
    File.write(file("in"), "head\nbody\n")
    File.open(file("in")) do |io|
      io.sysread(5)
      control = Launch::Control.new([RUBY, "-e", "exit $stdin.read.size"], input: io)
      measured = Launch.new([RUBY, "-e", "exit $stdin.read.size"], in: io).call
      difference = control.compare(measured)
      assert_equal [5, 5], [difference.with, difference.without].map { |run| run.status.exitstatus }
      assert_operator difference.wall_ratio, :>, 0
      assert_operator difference.cpu_ratio, :>, 0
    end
  end

  def test_a_pipe_can_not_be_read_twice
    IO.pipe do |reader, _|
      assert_match(/twice/, assert_raises(Pitwall::UsageError) { Launch::Control.new(["cat"], input: reader) }.message)
    end
  end
end
