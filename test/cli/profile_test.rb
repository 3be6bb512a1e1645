# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require "io/console"
require "pty"
require "pitwall/cli"

# The command around a program: nothing of the program may change but that it is recorded.
class ProfileTest < Minitest::Test
  include CommandLine

  # Without the report, which has its own tests.
  def profile(*command, options: [], **settings) = pitwall("profile", "--quiet", *options, "--", *command, **settings)

  def busy(...) = CommandLine.busy(...)

  def processes(path = recordings.first) = segments(path).map { |segment| segment.header.pid }.uniq

  # --- exit statuses ---

  def test_the_commands_own_status_wins
    [0, 1, 7, 255].each { |status| assert_equal status, profile(RUBY, "-e", "exit! #{status}").status.exitstatus }
  end

  def test_not_found_and_not_executable
    result = profile("no-such-command")
    assert_equal [127, "pitwall: no-such-command: command not found\n"],
                 [result.status.exitstatus, result.err.lines.first]
    File.write(file("x.rb"), "")
    assert_equal 126, profile("./x.rb").status.exitstatus
    assert_empty Dir.children(file(".pitwall")) - [".gitignore"]
  end

  def test_killed_by_a_signal_pitwall_dies_of_the_same
    %w[TERM KILL SEGV INT USR1 ABRT].each do |signal|
      result = profile("sh", "-c", "ulimit -c 0; kill -#{signal} $$")
      assert_equal Signal.list.fetch(signal), result.status.termsig, signal
      refute result.status.coredump?
    end
  end

  def test_an_exception_of_the_program_is_its_own
    result = profile(RUBY, "-e", "raise 'boom'")
    assert_equal 1, result.status.exitstatus
    assert_equal capture({}, RUBY, "-e", "raise 'boom'").err, result.err
  end

  def test_usage_errors_start_nothing
    touch = [RUBY, "-e", "File.write('started', '')"]
    [%w[--interval 1], %w[--interval 50us], %w[--interval 2s], %w[--mode wild], %w[--signal TERM], %w[--format yaml],
     %w[--record no/such/x.pit], %w[--out no/such/file], %w[--limit 0], %w[--nonsense]].each do |options|
      result = pitwall("profile", *options, "--", *touch)
      assert_equal 2, result.status.exitstatus, options.inspect
      assert_match(/\Apitwall: .*\n/, result.err)
    end
    assert_equal 2, pitwall("profile").status.exitstatus
    refute File.exist?(file("started"))
  end

  # --- streams ---

  def test_standard_streams_pass_through_untouched
    bytes = (0..255).map(&:chr).join.b * 300
    copy = "$stdin.binmode; $stdout.binmode; $stdout.write($stdin.read); $stderr.write('err')"
    result = profile(RUBY, "-e", copy, stdin: bytes)
    assert_equal bytes, result.out
    assert_equal "err", result.err
    assert_equal 1, recordings.size
  end

  def test_arguments_pass_through_untouched
    arguments = ["", " ", "a b", "--help", "--", "*", "$HOME", "é\n"]
    result = profile(RUBY, "-e", "print ARGV.inspect", "--", *arguments)
    assert_equal arguments.inspect, result.out.force_encoding("UTF-8")
  end

  # --- the environment as the program sees it ---

  def test_the_environment_is_the_users_but_for_three_variables
    dump = [RUBY, "-e", "puts ENV.to_h.inspect"]
    plain = eval(capture({ "RUBYOPT" => "-W1" }, *dump).out)
    seen = eval(profile(*dump, env: { "RUBYOPT" => "-W1" }).out)
    assert_equal %w[PITWALL_OPTIONS PITWALL_PARTS RUBYOPT], seen.reject { |name, value| plain[name] == value }.keys.sort
    assert_empty plain.keys - seen.keys
    assert_match(/\A-r\S+ -W1\z/, seen["RUBYOPT"])
  end

  def test_gems_are_the_users
    program = "p $LOADED_FEATURES.grep(/pastel|optparse|json|digest/)" \
              ".reject { |path| path.start_with?(#{Checkout::ROOT.dump}) }.first"
    assert_equal "nil\n", profile(RUBY, "-e", program).out
  end

  def test_script_pitwall_sets_nothing_either
    skip "the checkout is not set up" unless Checkout.ready?
    out, = Open3.capture2(CLEAN, RUBY, "#{Checkout::ROOT}/script/pitwall", "profile", "--quiet", "--", RUBY, "-e",
                          "puts ENV.keys.grep(/GEM|BUNDLE|RUBY/).sort", chdir: @dir)
    outer = ENV.keys.grep(/GEM|BUNDLE|RUBY/) - CLEAN.keys
    assert_equal %w[RUBYOPT], out.split - outer
  end

  def test_bundle_exec
    skip "peer absent: bundler" unless system("bundle", "--version", out: File::NULL, err: File::NULL)
    File.write(file("Gemfile"), "")
    bundle = { "BUNDLE_GEMFILE" => file("Gemfile") }
    loaded = "p defined?(Bundler), Gem.loaded_specs.keys, $LOADED_FEATURES.map { |path| File.basename(path) }"
    command = ["bundle", "exec", RUBY, "-e", "#{busy} #{loaded}"]
    capture(bundle, *command) # Bundler looks around once (etc)
    plain = capture(bundle, *command)
    result = profile(*command, env: bundle)
    assert_equal plain.out.lines.first(2), result.out.lines.first(2), result.err
    added = eval(result.out.lines.last) - eval(plain.out.lines.last)
    assert_empty added - Dir["#{Checkout::ROOT}/lib/pitwall/**/*.{rb,so}"].map { |path| File.basename(path) }
    assert(segments.any? { |segment| segment.header.program == "-e" })
  end

  def test_paths_with_spaces
    lib = file("a checkout/lib")
    FileUtils.mkdir_p(File.dirname(lib))
    FileUtils.cp_r("#{Checkout::ROOT}/lib", lib)
    work = file("a work folder")
    Dir.mkdir(work)
    File.write(File.join(work, "a program.rb"), "#{busy} puts $0")
    result = profile(RUBY, "a program.rb", dir: work, env: { "TEST_LIB" => lib })
    assert_equal ["a program.rb\n", ""], [result.out, result.err]
    found = segments(Dir["#{work}/.pitwall/*.pit"].first)
    assert_equal ["a program.rb"], found.map { |segment| segment.header.program }
  end

  # Each of Resque's children has a title of its own, with the time and the job in it.
  def test_titles_of_workers
    titles = ["resque-3.2.0: Processing low since 1795437445 [Report]", "puma: cluster worker 0: 4711 [shop]",
              "unicorn worker[0] -c /etc/shop.rb", "sidekiq 7 shop [1 of 5 busy]"]
    File.write(file("work.rb"), "#{titles.inspect}.each { |title| $0 = title; Process.wait(fork { Integer.sqrt(9) }) }")
    profile(RUBY, file("work.rb"))
    programs = segments(Dir[file(".pitwall/*.pit")].first).map { |segment| segment.header.program }
    assert_equal ["puma", "resque-3.2.0", "sidekiq 7 shop", "unicorn worker", "work.rb"], programs.sort
  end

  # --- what is recorded ---

  def test_the_recording
    result = profile(RUBY, "-e", "def work = (#{busy(0.2)}); work", options: %w[--interval 2ms --record x.pit])
    assert_equal "", result.err
    assert_equal %w[x.pit], Dir.children(@dir).grep_v(/\A\./)
    segment = segments(file("x.pit")).first
    assert_equal 2_000_000, segment.header.interval_ns
    assert_equal "stop", segment.tail["reason"]
    assert_operator segment.stat("captures"), :>, 5
    assert_includes segment.frames.values.map(&:name).join(" "), "work"
  end

  def test_forks_and_spawned_children
    program = "#{busy} Process.wait(fork { #{busy} }); system(#{RUBY.dump}, '-e', #{busy.dump}); " \
              "puts `#{RUBY} -e 'puts 1'`; system('true')"
    assert_equal "1\n", profile(RUBY, "-e", program).out
    assert_equal 4, processes.size
    first = segments.first
    assert(segments[1, 2].all? { |segment| segment.header.ppid == first.header.pid }) # the last one's parent is a shell
  end

  def test_a_shell_between
    result = profile("sh", "-c", "#{RUBY} -e 'exit 0'; #{RUBY} -e 'exit 5'")
    assert_equal 5, result.status.exitstatus
    assert_equal 2, processes.size
  end

  def test_ruby_that_becomes_another_ruby
    result = profile(RUBY, "-e", "#{busy} exec(#{RUBY.dump}, '-e', #{"#{busy} puts :second; exit 4".dump})")
    assert_equal ["second\n", "", 4], [result.out, result.err, result.status.exitstatus]
    assert_equal 2, segments.size
    assert_equal 1, processes.size
  end

  def test_a_daemon_outlives_its_command
    program = <<~RUBY
      Process.wait(fork {
        Process.daemon(true, true)
        File.write("pid", Process.pid)
        [0, 1, 2].each { |fd| IO.for_fd(fd, autoclose: false).reopen(File::NULL) }
        sleep 0.05 until File.exist?("end") || !File.exist?("pid"); File.exist?("pid") && File.write("ended", "") })
      sleep 0.01 until File.size?("pid")
    RUBY
    result = profile(RUBY, "-e", program)
    pid = File.read(file("pid"))
    expected = %r{\Apitwall: process #{pid} still records to \.pitwall/[\w-]+-program\.parts/; }
    message = result.err.sub(/\d+-\S+?\.parts/, "x-program.parts")
    assert_match(/#{expected}when it has ended: pitwall report/, message)
    File.write(file("end"), "")
    eventually { File.exist?(file("ended")) }
    part = eventually { Dir[file(".pitwall/*.parts/#{pid}-*.pit")].last }
    eventually { File.open(part) { |io| io.flock(File::LOCK_EX | File::LOCK_NB) } }
    assert_equal pid.to_i, segments(part).first.header.pid
  end

  def test_a_command_that_is_no_ruby
    result = profile("echo", "hi")
    assert_equal ["hi\n", 4], [result.out, result.status.exitstatus]
    assert_match(/\Apitwall: nothing was recorded: no Ruby .*\n\z/, result.err)
    assert_equal [".gitignore"], Dir.children(file(".pitwall"))
    assert_equal 1, profile("false").status.exitstatus
  end

  # Names are UTF-8 in recordings, and words and folders are bytes there.
  def test_names_beyond_ascii_in_the_c_locale
    Dir.mkdir(file("ü ö"))
    File.write(file("ü ö/é.rb"), busy)
    run = ->(*words) { pitwall(*words, env: { "LC_ALL" => "C" }, dir: file("ü ö")) }
    result = run.call("profile", "--record", "ä.pit", "--", RUBY, "é.rb")
    assert_equal 0, result.status.exitstatus
    assert_match(/<main> +é\.rb/, result.err)
    [%w[--tree], %w[--format markdown], %w[--audit], %w[--redact]].each do |options|
      shown = run.call("report", "ä.pit", *options)
      assert_equal [0, ""], [shown.status.exitstatus, shown.err]
    end
    refused = run.call("report", "nö.pit")
    refused.err = refused.err.lines.first
    assert_one_line 2, /nö\.pit: no such file/, refused
  end

  def test_a_ruby_that_can_not_be_entered
    assert_match(/nothing was recorded.*--disable=rubyopt/, profile(RUBY, "--disable=rubyopt", "-e", "1").err)
  end

  def test_a_process_that_is_killed_is_readable
    result = profile(RUBY, "-e", "def work = (#{busy(1.6)}); work; Process.kill(:KILL, $$)")
    assert_equal 9, result.status.termsig
    assert_nil segments.first.tail
    assert_operator segments.first.stat("captures"), :>, 0
  end

  def test_the_temporary_folder_is_named
    File.write(file(".pitwall"), "")
    result = profile(RUBY, "-e", "1")
    assert_equal 1, Dir["#{result.err[%r{recording to (.*)/$}, 1]}/*.pit"].size
  end

  def test_a_report_that_fails_does_not_change_the_status
    lib = file(".tmp/lib")
    FileUtils.cp_r("#{Checkout::ROOT}/lib", lib)
    File.write("#{lib}/pitwall/cli/verbs/report.rb", "raise 'oh'")
    result = pitwall("profile", "--", RUBY, "-e", "exit 3", env: { "TEST_LIB" => lib })
    assert_equal 3, result.status.exitstatus
    assert_match(/\Apitwall: RuntimeError: oh; this is a bug/, result.err)
  end

  # `bundle exec rake` that starts pitwall, for example.
  def test_a_bundle_without_gems_of_the_command
    File.write(file("Gemfile"), "")
    bundle = { "RUBYOPT" => "-rbundler/setup", "BUNDLE_GEMFILE" => file("Gemfile"), "PITWALL_DEBUG" => nil }
    result = capture(bundle, RUBY, File.join(Checkout::ROOT, "script/pitwall"), "profile", "--", RUBY, "-e", "1")
    assert_equal 4, result.status.exitstatus
    assert_match(/\Apitwall: the bundle of #{file("Gemfile")} lacks \w+, which pitwall needs: run it/, result.err)
    assert_equal 1, result.err.lines.size
  end

  def test_a_disk_that_fills_up_is_told
    result = profile(RUBY, "-e", "exit 3", options: %w[--record /dev/full])
    assert_equal 3, result.status.exitstatus
    missing = %r{\Apitwall: \d+ bytes are missing from /dev/full \(No space left on device\): }
    folder = result.err[%r{#{missing}they are in (.*)/, make room}, 1]
    assert_equal 1, Dir[File.expand_path("#{folder}/*.pit", @dir)].size
  end

  def test_a_recording_that_could_not_be_written_to_the_end_is_told_from_one_of_a_killed_process
    method = "def m\#{n}_\#{rand(10**9)}_with_a_long_name = (#{busy(0.03)})"
    program = "n = 0; until n > 60; n += 1; eval(\"#{method}\"); " \
              "send(private_methods.grep(/\\Am\#{n}_/).first); end; puts :alive"
    limited = ["sh", "-c", "ulimit -f 5; exec \"$@\" | cat", "sh", RUBY, "-e", program]
    result = pitwall("profile", "--record", "x.pit", "--quiet", "--", *limited)
    assert_equal ["alive\n", 0], [result.out, result.status.exitstatus], result.err
    said = /process \d+ could not write its recording to the end \(File too large: ulimit -f, or max_bytes\): /
    said = /#{said}it holds \S+ s of \S+ s, complete to the last flush/
    assert_match(/\Apitwall: #{said}\n\z/, result.err)
    assert_match said, pitwall("report", "x.pit").out.gsub(/\s+/, " ")
    object = JSON.parse(pitwall("report", "x.pit", "--format", "json").out)
    assert_equal Errno::EFBIG::Errno, object.dig("losses", "write_error")
  end

  def test_a_report_that_standard_output_has_no_room_for_is_told_and_the_status_stays
    full = ["sh", "-c", "exec \"$@\" >/dev/full", "sh"]
    command = [RUBY, *START, "profile", "--out", "-", "--record", "x.pit", "--", RUBY, "-e", "exit 3"]
    result = capture({ "PITWALL_DEBUG" => nil }, *full, *command)
    assert_equal 3, result.status.exitstatus
    assert_equal "pitwall: cannot write standard output: No space left on device; " \
                 "the recording is #{file("x.pit")}\n", result.err
  end

  def test_words_that_are_no_text_or_nothing
    result = profile(RUBY, "-e", "p ARGV[0].bytes", "--", "--\xFF")
    assert_equal ["[45, 45, 255]\n", 1], [result.out, segments.size], result.err
    { %w[--record] => "--record needs a name", %w[--out] => "--out needs a name" }.each do |option, said|
      refused = pitwall("profile", *option, "", "--", "true", env: { "PITWALL_DEBUG" => nil })
      assert_one_line 2, /\Apitwall: #{said}/, refused
    end
    refused = pitwall("profile", "--mode", "outside", "--signal", "URG", "--", "true", env: { "PITWALL_DEBUG" => nil })
    assert_one_line 2, /uses no signal: leave out --signal/, refused
    %w[outside safepoint].each do |mode|
      refused = pitwall("profile", "--mode", mode, "--native", "--", "true", env: { "PITWALL_DEBUG" => nil })
      assert_one_line 2, /--native needs --mode signal/, refused
    end
  end

  def test_where_the_report_went_is_said
    result = pitwall("profile", "--format", "html", "--out", "x.html", "--record", "x.pit", "--", RUBY, "-e", busy)
    assert_match(/\AThe page is x\.html\nRecorded in x\.pit\n/, result.err)
    assert_match(/\A<!doctype html>/i, File.read(file("x.html")))
  end

  # What fits no more is told in one line, and Pitwall itself is not killed for it.
  def test_a_file_that_may_not_grow_is_said_before_the_command_runs
    File.write(file("x.pit"), "PITWALL 1\nolder")
    limited = ["sh", "-c", "ulimit -f 3; exec \"$@\"", "sh"] # 1.5 or 3 KB
    command = [RUBY, *START, "profile", "--record", "x.pit", "--", RUBY, "-e", "puts 1"]
    result = capture({ "PITWALL_DEBUG" => nil }, *limited, *command)
    assert_one_line 2, /\Apitwall: cannot write x\.pit: File too large; name another with --record FILE\.pit$/, result
    assert_equal "PITWALL 1\nolder", File.read(file("x.pit"))
  end

  def test_a_device_gets_the_recording_and_no_folder_is_left
    result = pitwall("profile", "--record", "/dev/null", "--", RUBY, "-e", "exit 3")
    assert_equal 3, result.status.exitstatus
    assert_match(%r{\Apitwall: no report: /dev/null is no file, .*--record FILE.pit\n\z}, result.err)
    assert_empty Dir[file(".tmp/pitwall-*")]
  end

  # --- the report ---

  def reported(*options, program: "def work = (#{busy(0.2)}); work; puts :out", **settings)
    pitwall("profile", *options, "--", RUBY, "-e", program, **settings)
  end

  def test_the_report_goes_to_standard_error
    result = reported
    assert_equal "out\n", result.out
    assert_match(/\bObject#work\b/, result.err)
    commands = %r{  pitwall view \S+\n  pitwall export \S+ --to speedscope --out profile\.json$}
    assert_match(%r{^Recorded in \.pitwall/[\w.-]+\.pit\nTo look at it in the browser, or elsewhere:\n#{commands}},
                 result.err)
    refute_includes result.err, "\e["
  end

  def test_json_on_standard_output_follows_the_commands_own
    result = reported("--format", "json", "--out", "-")
    assert_match(/\Aout\n\{/, result.out)
    report = JSON.parse(result.out.delete_prefix("out\n"))
    assert_equal ["pitwall/report-1", "wall"], report.values_at("schema", "weight")
    assert(report["methods"].any? { |row| row["name"] == "Object#work" })
    refute_includes result.err, "Object#work"
  end

  def test_json_on_standard_error_stands_alone
    assert_equal "pitwall/report-1", JSON.parse(reported("--format", "json").err)["schema"]
  end

  def test_the_report_in_a_file
    result = reported("--format", "markdown", "--weight", "cpu", "--limit", "1", "--quiet", "--out", "report.md")
    assert_equal ["out\n", ""], [result.out, result.err]
    assert_match(/^\| self \| cpu .*\n.*\n\| .*`.+`.*\n\n/, File.read(file("report.md")))
  end

  def test_the_report_never_overwrites_the_recording
    File.symlink("x.pit", file("y"))
    [%w[--record x.pit --out x.pit], %w[--record ./x.pit --out x.pit], %w[--record x.pit --out y]].each do |options|
      result = reported(*options)
      assert_equal ["", 2], [result.out, result.status.exitstatus], result.err
      assert_includes result.err, "which it would overwrite"
      refute_path_exists file("x.pit")
    end
  end

  def test_control
    result = reported("--control")
    assert_equal "out\n", result.out
    assert_match(/without Pitwall: wall ×\d/, result.err)
    assert_match(/an indication, not a measurement/, result.err)
  end

  def test_colour_is_for_terminals_that_want_it
    [[{}, true], [{ "NO_COLOR" => "1" }, false], [{ "TERM" => "dumb" }, false]].each do |env, coloured|
      text = +""
      command = [RUBY, *START, "profile", "--", RUBY, "-e", busy]
      PTY.spawn(CLEAN.merge({ "TERM" => "xterm" }, env), *command, chdir: @dir) do |output, _, pid|
        drain(output, text)
        Process.wait(pid)
      end
      assert_match(/Recorded in/, text)
      assert_equal coloured, text.include?("\e["), env.inspect
    end
  end

  # --- signals ---

  def running(program)
    FileUtils.rm_f(file("ready"))
    pid = pitwall_start("profile", "--quiet", "--", RUBY, "-e", "#{program}; File.write('ready', ''); sleep 30; exit 1")
    eventually { File.exist?(file("ready")) }
    yield pid
    Process.wait(pid)
    $?
  end

  def test_sigterm_is_forwarded_and_the_recording_is_made
    assert_equal 9, running("trap('TERM') { exit 9 }") { |pid| Process.kill("TERM", pid) }.exitstatus
    assert_equal 15, running("") { |pid| Process.kill("TERM", pid) }.termsig
    assert_equal 2, recordings.size
  end

  # Reads a terminal to its end, which Linux reports as an error.
  def drain(terminal, text = +"")
    loop { text << terminal.readpartial(4096) }
  rescue EOFError, Errno::EIO
    text
  end

  def on_terminal(program)
    PTY.spawn(CLEAN, RUBY, *START, "profile", "--quiet", "--", RUBY, "-e", program, chdir: @dir) do |output, input, pid|
      text = +""
      text << output.readpartial(4096) until text.include?("ready")
      yield input, pid
      drain(output, text)
      Process.wait(pid)
      return [text, $?]
    end
  end

  def test_ctrl_c_reaches_the_program_once
    program = "n = 0; trap('INT') { n += 1 }; puts 'ready'; sleep 0.1 while n.zero?; sleep 0.3; " \
              "puts 'interrupts:' + n.to_s; exit 6"
    text, status = on_terminal(program) { |input, _| input.write("\x03") }
    assert_match(/interrupts:1\b/, text)
    assert_equal 6, status.exitstatus
    assert_equal 1, recordings.size
  end

  def test_ctrl_c_kills_a_program_that_does_not_care
    _, status = on_terminal("trap('INT', 'SYSTEM_DEFAULT'); puts 'ready'; sleep 30") { |input, _| input.write("\x03") }
    assert_equal 2, status.termsig
    assert_equal 1, recordings.size
  end

  def test_a_killed_pitwall_leaves_readable_parts
    program = "File.write('child', $$); #{busy(1.3)} File.write('ready', ''); sleep 30"
    pid = pitwall_start("profile", "--quiet", "--", RUBY, "-e", program)
    eventually { File.exist?(file("ready")) }
    Process.kill("KILL", pid)
    Process.wait(pid)
    child = File.read(file("child")).to_i
    part = Dir[file(".pitwall/*.parts/#{child}-0.pit")].first
    assert_operator segments(part).first.stat("captures"), :>, 0
  ensure
    Process.kill("KILL", child) if child
  end
end
