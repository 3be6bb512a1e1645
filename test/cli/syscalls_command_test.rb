# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/syscall_dispatch"
require_relative "../support/command_line"
require_relative "../support/page_contents"
require "json"
require "pitwall"
require "pitwall/cli"

# `pitwall syscalls -- CMD` from end to end.
class SyscallsCommandTest < Minitest::Test
  include SyscallDispatch
  include CommandLine
  include PageContents

  PROGRAM = <<~'RUBY'
    def look = 20.times { File.exist?("none") }
    look
    puts "done"
  RUBY

  def setup
    super
    skip_without_dispatch
    File.write(file("look.rb"), PROGRAM)
  end

  def syscalls(*options, program: [RUBY, "--disable-gems", "look.rb"], **more)
    pitwall("syscalls", *options, "--", *program, **more)
  end

  # As a user has it, without backtraces.
  def plain(*arguments, **more) = pitwall(*arguments, env: { "PITWALL_DEBUG" => nil }.merge(more))
  def strace? = system("command -v strace > /dev/null")

  def test_a_damaged_recording
    syscalls("--quiet", "--record", "s.pit")
    bytes = File.binread(file("s.pit"))
    bytes.setbyte(bytes.index("STAT") + 25, bytes.getbyte(bytes.index("STAT") + 25) ^ 1)
    File.binwrite(file("s.pit"), bytes)
    assert_one_line 5, /s\.pit: damaged at byte .*try --salvage/, plain("syscalls", "s.pit")
    read = plain("syscalls", "s.pit", "--salvage")
    assert_equal 0, read.status.exitstatus, read.err
    assert_match(/skipped \d+ bytes at byte \d+: chunk STAT/, (read.out + read.err).gsub("\n  ", " "))
  end

  def test_a_page
    result = syscalls("--format", "html", "--out", "x.html", "--record", "x.pit")
    assert_equal [0, "done\n"], [result.status.exitstatus, result.out], result.err
    assert_match(/"kind":"recording".*"view":"syscalls".*"by_call":/, unpacked("x.html"))
    assert_equal unpacked("x.html"), pitwall("syscalls", "x.pit", "--format", "html").out.then { |html| unpacked(html) }
    page = unpacked(pitwall("report", "x.pit", "--format", "html").out)
    assert_match(/"syscalls":\{.*"paths":\{"up"/, page)
    assert_equal 2, syscalls("--format", "html").status.exitstatus, "a page is a file"

    assert_equal 0, syscalls("--count", "--format", "html", "--out", "y.html").status.exitstatus
    assert_match(/"words":"\d+ calls, counted only/, unpacked("y.html"))
  end

  # The object of a page.
  def unpacked(html)
    html = File.read(file(html)) unless html.include?("<")
    page_json(html)
  end

  def test_the_report_names_the_line
    result = syscalls
    assert_equal [0, "done\n"], [result.status.exitstatus, result.out], result.err
    assert_match(/\blook\.rb:1\b/, result.err)
    assert_match(/^Not seen: Ruby's own start/, result.err)
    again = pitwall("report", recordings.first, "--view", "syscalls")
    assert_match(/\blook\.rb:1\b/, again.out)
    assert_equal again.out, pitwall("report", recordings.first).out, "what was recorded says which view"
    assert_equal 0, pitwall("syscalls", recordings.first).status.exitstatus
  end

  def test_json
    result = syscalls("--format", "json", "--out", "-")
    report = JSON.parse(result.out.delete_prefix("done\n"))
    assert_equal "pitwall/syscalls-1", report.fetch("schema")
    line = report.fetch("lines").find { |row| row.fetch("path").end_with?("look.rb") && row.fetch("line") == 1 }
    assert_equal 20, line.fetch("calls")
    assert_includes result.err.gsub(/\s+/, " "), "Not seen: #{report.fetch("not_seen")}."
    shown = pitwall("report", recordings.first, "--view", "syscalls", "--format", "json").out
    assert_equal report.fetch("not_seen"), JSON.parse(shown).fetch("not_seen")
    assert_equal report.fetch("calls"), segments.first.syscall_totals.values.sum(&:first)
  end

  def test_count
    text, json, markdown = %w[text json markdown].map do |format|
      syscalls("--count", "--format", format, "--out", "-").out
    end
    assert_match(/^ *2\d +20 +.* (newfstatat|stat)$/, text)
    calls = JSON.parse(json.delete_prefix("done\n"))
    assert_match(/own start/, calls.fetch("not_seen"))
    assert_equal calls.fetch("calls"), calls.fetch("by_call").sum { |row| row.fetch("calls") }
    assert_match(/^\| 2\d \| 20 \| .* \| `(newfstatat|stat)` \|$/, markdown)
    refute segments.first.syscall_rows?
  end

  # Nothing seen is not the same as only counted.
  def test_a_program_without_calls
    program = [RUBY, "--disable-gems", "-e", "1"]
    text, json, markdown = %w[text json markdown].map do |format|
      syscalls("--format", format, "--out", "-", program: program).out
    end
    [text, markdown].each do |shown|
      assert_match(/no file-system calls after Ruby's own start \(--start counts those\)/, shown)
      refute_match(/counted only|%/, shown)
    end
    assert_equal [0, []], JSON.parse(json).values_at("calls", "lines")
    assert_match(/^0 system calls, counted only/, syscalls("--count", "--out", "-", program: program).out)
  end

  def test_a_gate
    { "calls > 19" => 1, "calls > 100000" => 0, "failed > 19" => 1, "time > 100s" => 0 }.each do |gate, status|
      [[], ["--quiet"], ["--count", "--quiet"]].each do |options|
        result = syscalls("--fail-if", gate, *options)
        assert_equal status, result.status.exitstatus, "#{gate} #{options}\n#{result.err}"
        assert_equal status.positive?, result.err.include?("--fail-if #{gate}: ")
      end
    end
    program = [RUBY, "-e", "File.exist?('x'); exit 3"]
    assert_equal 3, syscalls("--fail-if", "calls > 1", program: program).status.exitstatus
    [[], ["--fail-if", "calls > 1"]].each do |gate|
      result = plain("syscalls", "--quiet", *gate, "--", "true")
      assert_one_line 4, /\Apitwall: nothing was recorded: no Ruby /, result
    end
  end

  def test_the_commands_own_ending_wins
    [["exit 3", 3], ["exit! 4", 4], ["raise 'x'", 1], ["exec 'sh', '-c', 'exit 5'", 5]].each do |code, status|
      assert_equal status, syscalls("--quiet", program: [RUBY, "-e", code]).status.exitstatus
    end
    assert_equal 15, syscalls("--quiet", program: [RUBY, "-e", "Process.kill(:TERM, $$); sleep"]).status.termsig
    statuses = [["no-such-command"], ["/"]].map do |program|
      syscalls("--quiet", program: program).status.exitstatus
    end
    assert_equal [127, 126], statuses
  end

  def test_children_are_in_it
    File.write(file("look.rb"), "system(#{RUBY.dump}, '--disable-gems', '-e', 'File.exist?(%q(/of-the-child))'); " \
                                "Process.wait(fork { File.exist?('/of-the-fork') })")
    syscalls
    paths = segments.flat_map { |part| [].tap { |found| part.each_syscall { |call| found << call.path } } }
    assert_equal [1, 1], [paths.count("/of-the-child"), paths.count("/of-the-fork")]
  end

  def test_strace_where_it_is_asked_for
    skip "peer absent: strace" unless strace?
    result = syscalls("--strace", program: [RUBY, "--disable-gems", "-e", "20.times { File.exist?('none') }; exit 3"])
    skip "peer absent: strace may not trace here" if result.err.include?("could not trace")
    assert_equal 3, result.status.exitstatus, result.err
    assert_match(/strace log/, result.err)
    assert_match(/^The log is .*\.strace$/, result.err)
    assert_empty recordings
    assert_equal 1, syscalls("--strace", "--quiet", "--fail-if", "calls > 19").status.exitstatus
    program = [RUBY, "-e", "Process.kill(:TERM, $$); sleep"]
    assert_equal 15, syscalls("--strace", "--quiet", program: program).status.termsig
    statuses = [["no-such-command"], ["./look.rb"]].map do |words|
      syscalls("--strace", "--quiet", program: words).status.exitstatus
    end
    assert_equal [127, 126], statuses
  end

  def test_rubys_own_start_through_strace
    skip "peer absent: strace" unless strace?
    result = syscalls("--start", program: [RUBY, "-e", "20.times { File.exist?('none') }; system('true'); exit 3"])
    skip "peer absent: strace may not trace here" if recordings.empty?
    assert_equal 3, result.status.exitstatus, result.err
    start = result.err[/^Ruby's own start, by strace: ([\d,]+) calls/, 1].to_s.delete(",").to_i
    assert_operator start, :>, 100
    looks = 0
    segments.first.each_syscall { |call| looks += 1 if call.path == file("none") }
    assert_equal 20, looks
    log = File.read(Dir[file(".pitwall/*-start.strace")].first)
    refute_match(/"none"|frozen_string_literal|exit 3/, log, "no call of the program's, no contents, no arguments")
    assert_equal 127, syscalls("--start", "--quiet", program: ["no-such-command"]).status.exitstatus
  end

  def test_bad_input_starts_nothing
    File.write(file("look.rb"), "File.write('started', '')")
    [%w[--limit 0], %w[--nonsense], %w[--format yaml], ["--fail-if", "objects > 1"], %w[--count --patterns study],
     %w[--strace --count], %w[--strace --no-stacks]].each do |options|
      assert_one_line 2, /\Apitwall: /, plain("syscalls", *options, "--", RUBY, "look.rb"), options.inspect
    end
    assert_one_line 2, /no command/, plain("syscalls", "--")
    result = plain("syscalls", "--strace", "--", RUBY, "look.rb", "PATH" => "/nowhere")
    assert_one_line 4, /strace is needed, but it is not installed \(Debian: apt install strace\)/, result
    refute File.exist?(file("started"))
  end

  # Recordings of something else have no such view.
  def test_only_of_system_calls
    pitwall("profile", "--quiet", "--record", "p.pit", "--", RUBY, "-e", CommandLine.busy)
    assert_one_line 2, /holds no system calls: record them with pitwall syscalls -- CMD/,
                    plain("report", "p.pit", "--view", "syscalls")
    syscalls("--quiet", "--record", "s.pit")
    assert_one_line 2, /view of syscalls/, plain("report", "s.pit", "--thread", "main")
  end

  def test_compare_counts_them
    result = pitwall("compare", "--syscalls", "--pairs", "2", "--format", "json", "--out", "c.json",
                     "--record", "c.jsonl", "--env", "N=1", "--env", "N=2", "--",
                     RUBY, "--disable-gems", "-e", "(ENV['N'].to_i * 10).times { File.exist?('/none') }")
    results = JSON.parse(File.read(file("c.json"))).fetch("results")
    calls = results.find { |row| row.fetch("metric") == "fs_calls" }
    assert_equal [10, 20, "more"], calls.values_at("a", "b", "verdict"), result.err
    again = JSON.parse(pitwall("report", "c.jsonl", "--format", "json").out)
    assert_equal results, again.fetch("results")
  end
end
