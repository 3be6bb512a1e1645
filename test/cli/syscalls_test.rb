# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require_relative "../support/page_contents"
require "zlib"

# `pitwall syscalls LOG`, from the command line to the last line.
class SyscallsCommandLineTest < Minitest::Test
  include CommandLine
  include PageContents

  LOAD = %w[open fstat64 close open fstat64 fgetxattr fgetxattr close].map { |call| "#{call}\t/srv/a.rb\n" }.join
  STRACE = <<~'LOG'
    7 openat(AT_FDCWD, "/srv/a/x.rb", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000020>
    7 openat(AT_FDCWD, "/srv/b/x.rb", O_RDONLY) = 5 <0.000030>
    7 close(5) = 0 <0.000010>
    7 write(1, "x", 1) = 1 <0.000010>
  LOG

  def test_the_studys_form_as_text_json_markdown_and_collapsed
    write("boot.log", "#{LOAD}read\t/srv/b\n")
    result = pitwall("syscalls", "boot.log")
    assert_equal 0, result.status.exitstatus, result.err
    assert_match(/\Aboot\.log · call<TAB>path log · 9 calls\n88\.9% explained: 8 calls in 1 marker; 1 not\n/,
                 result.out)
    json = JSON.parse(pitwall("syscalls", "boot.log", "--format", "json").out)
    markers = json["markers"]
    assert_equal ["pitwall/syscalls-1", 9, 8], json.values_at("schema", "calls", "explained")
    assert_equal [1, 0], markers.values_at("%LOAD", "%ASDS")
    assert_equal %w[%LOAD %YAML %RRPI %SCAN %SGEM %ASDS %STLS], json["markers"].keys
    assert_equal [[], nil], [json["lines"], json["ns"]]
    assert_match(/\A\*\*boot\.log\*\* .*\| `%LOAD` \| 1 \| 8 \|/m,
                 pitwall("syscalls", "boot.log", "--format", "markdown").out)
    assert_equal "%LOAD\t/srv/a.rb\nread\t/srv/b\n", pitwall("syscalls", "boot.log", "--collapsed").out
    zipped = Zlib.gzip("#{LOAD}read\t/srv/b\n")
    assert_equal "%LOAD\t/srv/a.rb\nread\t/srv/b\n", pitwall("syscalls", "-", "--collapsed", stdin: zipped).out
  end

  def test_a_log_of_strace_has_times_and_todays_patterns
    write("s.log", STRACE)
    json = JSON.parse(pitwall("syscalls", "s.log", "--format", "json").out)
    assert_equal [4, 1, 70_000], json.values_at("calls", "failed", "ns")
    assert_equal ["strace", 1], [json.dig("log", "format"), json["markers"]["%SCAN"]]
    assert_includes json["markers"].keys, "%REAL"
    scans = JSON.parse(pitwall("syscalls", "s.log", "--patterns", "scan", "--format", "json").out)
    assert_equal %w[%SCAN], scans["markers"].keys
  end

  def test_a_log_as_a_page
    write("s.log", STRACE)
    html = pitwall("syscalls", "s.log", "--format", "html").out
    assert_match(/\A<!doctype html>.*<title>s\.log · Pitwall<\/title>/m, html)
    result = pitwall("syscalls", "s.log", "--format", "html", "--out", "s.html")
    assert_equal ["", 0], [result.out, result.status.exitstatus]
    assert_equal html, File.read(file("s.html"))
    failed = pitwall("syscalls", "s.log", "--format", "html", "--out", "s.html", "--fail-if", "calls > 3")
    assert_equal 1, failed.status.exitstatus
    {
      %w[s.log --format html --limit 3] => /leave out --limit/,
      %w[s.log --format html --collapsed] => /leave out --format/
    }.each do |arguments, expected|
      result = pitwall("syscalls", *arguments)
      assert_equal 2, result.status.exitstatus
      assert_match expected, result.err
    end
  end

  def test_two_logs_as_a_page
    write("a.log", "stat64\t/srv/a.rb\n" * 30)
    write("b.log", "stat64\t/srv/a.rb\n" * 12 + "open\t/srv/<b>.rb\n" * 3)
    html = pitwall("syscalls", "a.log", "b.log", "--format", "html").out
    assert_includes html, "<title>b.log against a.log · Pitwall</title>"
    object = JSON.parse(page_json(html))
    assert_equal ["fewer file-system calls: 30 → 15 (−50.0%)", "green"],
                 object["verdicts"][0].values_at("claim", "style")
    by_call = object["tables"].find { |table| table["title"] == "By call" }
    assert_equal ["stat64", "30", "12", { "text" => "−18", "style" => "green" }, "−60.0%"], by_call["rows"].first
    assert_equal 2, pitwall("syscalls", "a.log", "b.log", "--format", "html", "--limit", "3").status.exitstatus
  end

  def test_what_a_fix_saves_at_most
    write("s.log", Array.new(20) { |n| %(7 stat("/srv/#{n}.rb", {st_mode=S_IFREG|0644}) = 0\n) }.join)
    assert_match(/^what a fix would save \(at most: .*\)\n%CHEK  saves at most 14 calls/,
                 pitwall("syscalls", "s.log").out)
    assert_match(/`%CHEK` saves at most 14 calls/, pitwall("syscalls", "s.log", "--format", "markdown").out)
    json = JSON.parse(pitwall("syscalls", "s.log", "--format", "json").out)
    pass = json["passes"].find { |one| one["name"] == "%CHEK" }
    assert_equal [14, true], pass.values_at("saved_calls", "saves_at_most")
  end

  # Nobody's $LOAD_PATH holds those.
  def test_libcs_own_files_are_not_told_to_change_the_load_path
    lines = %w[C.UTF-8 C.utf8].map do |name|
      path = "/usr/lib/locale/#{name}/LC_CTYPE"
      %(7 openat(AT_FDCWD, "#{path}", O_RDONLY|O_CLOEXEC) = -1 ENOENT (No such file or directory)\n)
    end
    write("s.log", lines.join)
    shown = pitwall("syscalls", "s.log").out.gsub(/\s+/, " ")
    assert_match(/%SCAN saves at most 1 call .*for libc's own files \(LC_CTYPE, locale\) those of the system → for /,
                 shown)
    assert_match(/ those of the system → for Ruby's files, .*; for libc's, nothing/, shown)
  end

  def test_two_logs_say_what_changed
    write("a.log", LOAD * 3)
    write("b.log", LOAD)
    result = pitwall("syscalls", "--diff", "a.log", "b.log")
    assert_match(/\Afewer file-system calls: 24 → 8 \(−66\.7%\)$/, result.out)
    json = JSON.parse(pitwall("syscalls", "a.log", "b.log", "--format", "json").out)
    totals = { "name" => "calls", "before" => 24, "after" => 8, "change" => -16 }
    assert_equal ["pitwall/syscalls-diff-1", totals], [json["schema"], json["totals"].first]
    assert_equal [3, 1], %w[before after].map { |side| json[side]["markers"]["%LOAD"] }
    assert_match(/\A\*\*24 → 8 file-system calls\*\*/,
                 pitwall("syscalls", "a.log", "b.log", "--format", "markdown").out)
  end

  def test_limits
    write("a.log", LOAD)
    write("b.log", LOAD * 2)
    {
      %w[a.log --fail-if calls>7] => [1, /calls is 8, limit 7$/], ["a.log", "--fail-if", "calls > 8"] => [0, /\A\z/],
      ["a.log", "--fail-if", "load > 0"] => [1, /load is 1/],
      ["a.log", "b.log", "--fail-if", "calls > 0%"] => [1, /calls went from 8 to 16$/],
      ["b.log", "a.log", "--fail-if", "more"] => [0, /\A\z/],
      ["a.log", "--fail-if", "time > 1ms"] => [4, /no times/],
      ["a.log", "--fail-if", "more"] => [2, /nothing to compare/],
      ["a.log", "b.log", "--fail-if", "slower"] => [2, /not slower/],
      ["a.log", "--fail-if", "magic > 1"] => [2, /no metric magic/]
    }.each do |arguments, (status, expected)|
      result = pitwall("syscalls", *arguments)
      assert_equal status, result.status.exitstatus, "#{arguments} #{result.err}"
      assert_match expected, result.err, arguments.inspect
    end
  end

  def test_bad_input_is_one_line
    write("empty.log", "")
    write("garbage.log", Random.new(3).bytes(5000))
    write("a.log", LOAD)
    {
      %w[none.log] => [2, /none\.log: no such file/], %w[empty.log] => [5, /empty\.log: is empty/],
      %w[garbage.log] => [5, /garbage\.log: holds no system calls/],
      [] => [2, /nothing to look at: pitwall syscalls -- CMD/], %w[a.log a.log a.log] => [2, /3 logs/],
      %w[a.log --diff] => [2, /--diff takes two logs/],
      %w[a.log --collapsed --format json] => [2, /leave out --format/],
      %w[a.log --patterns magic] => [2, /no pattern %MAGIC/], %w[a.log --limit 0] => [2, /--limit 0/],
      %w[a.log --out a.log] => [2, /--out a\.log/], %w[.] => [2, /is a directory/]
    }.each do |arguments, (status, expected)|
      assert_one_line(status, expected, pitwall("syscalls", *arguments), arguments.inspect)
    end
  end

  def test_what_could_be_read_counts_and_the_rest_is_said
    write("half.log", "#{LOAD}\x00\xFF half\nopen\t/srv/c\n".b)
    result = pitwall("syscalls", "half.log")
    assert_equal 0, result.status.exitstatus
    assert_match(/9 calls$/, result.out.lines.first)
    assert_match(/^! half\.log: 1 line could not be read/, result.out)
    assert_match(/\A%LOAD.*\nopen\t\/srv\/c\n\z/, pitwall("syscalls", "half.log", "--collapsed").out)
  end

  def test_patterns_of_the_working_directory
    write("a.log", "read\t/x.erb\n" * 5)
    write(".pitwall.yml", <<~YAML)
      syscalls:
        patterns:
          - { name: "%ERB", match: run, calls: read, path: '\\.erb\\z', least: 3,
              explanation: templates read in pieces, advice: read them whole }
    YAML
    json = JSON.parse(pitwall("syscalls", "a.log", "--format", "json").out)
    assert_equal [1, 5], [json["markers"]["%ERB"], json["explained"]]
    assert_match(/%ERB/, pitwall("syscalls", "--list-patterns").out)
    {
      "- 1" => /a table is wanted/, "syscalls: [1" => /\.pitwall\.yml/,
      "syscalls: { colours: 1 }" => /unknown key colours/,
      "syscalls: { patterns: [{ name: x }] }" => /a name is %/,
      "syscalls: !ruby/object:Object {}" => /\.pitwall\.yml/
    }.each do |text, expected|
      write(".pitwall.yml", text)
      assert_one_line(2, expected, pitwall("syscalls", "a.log"), text)
    end
  end

  private

  def pitwall(*arguments, **options)
    result = super(*arguments, env: { "PITWALL_DEBUG" => nil }, **options)
    result.out.force_encoding(Encoding::UTF_8)
    result
  end

  def write(name, text) = File.binwrite(file(name), text)
end
