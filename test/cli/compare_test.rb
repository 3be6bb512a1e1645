# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"

# `pitwall compare`: its verdicts as exit statuses, and what becomes of sides that can't be measured. Building sides is
# tested with Workspace.
class CompareTest < Minitest::Test
  include CommandLine

  QUICK = %w[--warmup 1 --budget 60].freeze
  # Allocates as many objects as the variable says.
  COUNTED = "Pitwall.bench { |x| x.report('make') { ENV.fetch('OBJECTS', 1).to_i.times { Object.new } } }"

  # --- verdicts ---

  def test_too_little_is_undecided_and_says_what_would_do
    result = naps("--pairs", "2")
    assert_equal 3, result.status.exitstatus, result.err
    assert_match(/\AMeasured values in (\S+); pitwall report \1 shows all of them\n\z/, result.err)
    assert_match(/\AUndecided whether .*^2 pairs: 8 are needed; --pairs 8 would do$/m, result.out)
  end

  # A count that is the same each time needs no more than one pair.
  def test_a_gate_decides_instead
    write("x.rb", COUNTED)
    { "objects > 0%" => 1, "objects > 200%, slower" => 0 }.each do |gate, status|
      result = compare("--pairs", "1", "--env", "OBJECTS=2", "--fail-if", gate, "x.rb")
      assert_equal status, result.status.exitstatus, "#{gate}: #{result.err}"
      assert_equal status == 1, result.err.include?("pitwall: --fail-if: #{gate}\n")
    end
  end

  def test_counters_have_their_own_verdict_and_a_control
    write("x.rb", COUNTED)
    result = compare("--pairs", "1", "--control", "--details", "--env", "OBJECTS=1000", "x.rb")
    assert_includes result.out, "Again:"
    assert_match(/^objects allocated +\d+ +1,00\d +×\d+ +more, exact$/, result.out)
    assert_match(/^A\/A control \(as is against itself\)/, result.out)
  end

  def test_several_cases
    write("x.rb", "Pitwall.bench { |x| x.report('one') { 1 }; " \
                  "x.report('two') { ENV.fetch('N').to_i.times.map(&:to_s) } }")
    result = compare("--pairs", "1", "--format", "markdown", "--out", "report.md",
                     "--env", "N=1", "--as", "base", "--env", "N=100", "x.rb")
    assert_equal ["", 3], [result.out, result.status.exitstatus]
    report = File.read(file("report.md"))
    ["N=100 is undecided against base in both cases", "| `two` | objects allocated", "<details>",
     "pitwall compare --warmup 1"].each { |part| assert_includes report, part }
  end

  def test_an_emptied_method
    write("x.rb", "class Order; def total = (1..5000).sum { |i| i.to_s.size }; end\n" \
                  "Pitwall.bench { |x| x.report('total') { Order.new.total } }")
    result = compare("--pairs", "1", "--fail-if", "slower", "--stub", "Order#total", "x.rb")
    assert_equal 0, result.status.exitstatus, result.err
    assert_match(/\AUndecided whether without Order#total is faster .*^objects allocated +\S+ +1 .* fewer, exact$/m,
                 result.out)
    assert_one_line 4, /x\.rb \(without Order#nope\), case total: Order#nope doesn't exist/,
                    compare("--stub", "Order#nope", "x.rb")
  end

  # --- results ---

  def test_check_compares_what_is_returned
    write("x.rb", "Pitwall.bench { |x| x.report('sum') { [1, 2, ENV.fetch('X', 3).to_i].sum } }")
    assert_one_line 4, /sum: as is and X=4 return different results/, compare("--check", "--env", "X=4", "x.rb")
    assert_equal 3, compare("--check", "--pairs", "1", "--env", "X=3", "x.rb").status.exitstatus
    write("random.rb", "Pitwall.bench { |x| x.report('random') { rand } }")
    assert_one_line 4, /random: returns something else each time/, compare("--check", "--env", "X=4", "random.rb")
  end

  # --- whole commands ---

  def test_statuses_of_commands
    write("data", "")
    assert_one_line 127, /no-such-command: command not found/, compare("--env", "A=1", "--", "no-such-command")
    assert_one_line 126, /\.\/data: not executable/, compare("--env", "A=1", "--", "./data")
    assert_one_line 4, /\(A=1\): ended with status 1; --ignore-failure/,
                    compare("--env", "A=1", "--", "sh", "-c", "test -z \"$A\"")
    result = compare("--pairs", "1", "--ignore-failure", "--env", "A=1", "--", "sh", "-c", "test -z \"$A\"")
    assert_equal 3, result.status.exitstatus, result.err
    assert_match(/^Undecided whether A=1 is faster/, result.out)
  end

  # What the command prints is discarded, so standard output is the report's.
  def test_a_report_in_markdown_can_be_redirected
    command = [RUBY, "--disable=gems", "-e", "puts 'O'; warn 'E'"]
    result = compare("--pairs", "1", "--env", "A=1", "--format", "markdown", "--", *command)
    assert_match(/\A\*\*Undecided whether A=1 is faster or slower than as is\*\*/, result.out)
    assert_match(/\AMeasured values in \S+\n\z/, result.err)
    assert_match(/```\n\z/, result.out)
  end

  # --- what can't be compared ---

  def test_bad_usage_is_one_line
    write("x.rb", "File.write('started', '')")
    {
      %w[x.rb] => /nothing to compare: name a side/, %w[--env A=1] => /nothing to run/,
      %w[--env A x.rb] => /--env A: write NAME=VALUE/, %w[--env A=1 y.rb] => /y\.rb: no such file/,
      %w[--env A=1 x.rb x.rb] => /one benchmark file at a time/,
      %w[--ruby no-such-ruby x.rb] => /cannot run no-such-ruby/, %w[--rev HEAD x.rb] => /not a git repository/,
      %w[--patch no.diff x.rb] => /--patch no\.diff: no such file/, %w[--stub total x.rb] => /--stub total/,
      %w[-e 1] => /nothing to compare it with/, %w[--env A=1 -e 1 x.rb] => /measure one or the other/,
      %w[--pairs 0 --env A=1 x.rb] => /--pairs 0/, %w[--level 100 --env A=1 x.rb] => /between 0% and 100%/,
      %w[--margin x --env A=1 x.rb] => /takes a percentage/, %w[--fail-if huge --env A=1 x.rb] => /cannot read `huge`/,
      %w[a.pit b.pit] => /a\.pit: no such file/, %w[--weight calls a.pit b.pit] => /--weight calls/
    }.each do |arguments, expected|
      assert_one_line 2, expected, pitwall("compare", *arguments), arguments.inspect
    end
    refute File.exist?(file("started"))
  end

  def test_sides_that_cannot_be_measured
    write("x.rb", "raise 'no A' unless ENV['A']; " \
                  "Pitwall.bench { |x| x.report(ENV['A']) { raise 'B is set' if ENV['B'] } }")
    assert_one_line 4, /x\.rb \(as is\): cannot load it: RuntimeError: no A/, compare("--env", "A=1", "x.rb")
    assert_one_line 4, /A=2: has no case 1; both sides need the same cases/,
                    compare("--env", "A=1", "--env", "A=2", "x.rb")
    assert_one_line 4, /x\.rb \(A=1 \+ B=1\), case 1: it raised RuntimeError: B is set/,
                    compare("--env", "A=1", "--env", "A=1", "--and", "--env", "B=1", "x.rb")
    assert_one_line 4, /stuck\.rb.*: did not end within 2.5 s/, stuck
    assert_empty Dir[file(".pitwall/*.jsonl")]
    assert_nothing_left
  end

  # --- revisions ---

  def test_two_revisions_of_a_repository
    Dir.mkdir(file("repository"))
    revisions
    settings = { dir: file("repository"), env: { "PITWALL_CACHE" => file("cache") } }
    before = tree
    result = compare("--pairs", "1", "--record", file("kept.jsonl"), "--rev", "HEAD~1", "--rev", "main",
                     "--format", "json", "x.rb", **settings)
    assert_equal 3, result.status.exitstatus, result.err
    objects = JSON.parse(result.out)["results"].find { |row| row["metric"] == "objects" }
    assert_equal ["more", true, "HEAD~1", "main"], objects.values_at("verdict", "exact", "base", "side")
    assert_equal 10, objects["b"] - objects["a"]
    assert_one_line 2, /--rev nope: no such revision/, compare("--rev", "nope", "x.rb", **settings)
    assert_equal before, tree
    assert_empty Dir[file("cache/**/building/*")]
    assert_nothing_left
  end

  # The first line of a backtrace has the message; the last one is where the program began.
  def test_a_command_that_fails_says_why
    write("x.rb", "def deep(n) = n.zero? ? raise(KeyError, 'no such key') : deep(n - 1)\ndeep(5)")
    reason = /\(x\.rb:1:in .*deep.*: no such key \(KeyError\)\)/
    assert_one_line 4, /x\.rb \(as is\): ended with status 1 #{reason}; --ignore-failure/,
                    pitwall("compare", "--env", "A=1", "--", RUBY, "x.rb")
  end

  # What git ignores is in no clone.
  def test_a_file_that_git_ignores_is_named_with_the_mend
    Dir.mkdir(file("repository"))
    revisions
    FileUtils.mkdir_p(file("repository/config"))
    File.write(file("repository/.gitignore"), "config/*.yml\n")
    File.write(file("repository/config/secret.yml"), "key: 1\n")
    File.write(file("repository/run.rb"), "def key = File.read('config/secret.yml')\nkey\n")
    File.write(file("repository/bench.rb"), <<~RUBY)
      KEY = File.read(File.join(__dir__, 'config/secret.yml'))
      Pitwall.bench { |x| x.report('one') { 1 } }
    RUBY
    git("add", "run.rb", "bench.rb", ".gitignore")
    git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "reads a key")
    settings = { dir: file("repository"), env: { "PITWALL_CACHE" => file("cache") } }
    mend = /; git ignores config\/secret\.yml, so clones don't have it: --carry config\/secret\.yml takes it along/
    failed = pitwall("compare", "--dirty", "--", RUBY, "run.rb", **settings)
    reason = /No such file or directory @ rb_sysopen - config\/secret\.yml \(Errno::ENOENT\)/
    assert_one_line 4, /\(run\.rb:1:in .*: #{reason}\).*#{mend}/, failed
    failed = compare("--dirty", "bench.rb", **settings)
    assert_one_line 4, /cannot load it: Errno::ENOENT: .*config\/secret\.yml.*#{mend}/, failed
    refute_includes failed.err.lines.first, file("cache")
    carried = compare("--dirty", "--carry", "config/secret.yml", "--pairs", "1", "bench.rb", **settings)
    assert_equal 3, carried.status.exitstatus, carried.err
  end

  def test_a_clean_tree_has_nothing_to_compare
    Dir.mkdir(file("repository"))
    revisions
    git("checkout", "-q", "lib.rb")
    settings = { dir: file("repository"), env: { "PITWALL_CACHE" => file("cache") } }
    clean = /--dirty: nothing to compare: the working tree has no changes, it is what HEAD is; name another revision/
    assert_one_line 2, clean, compare("--dirty", "x.rb", **settings)
    assert_one_line 2, /it is what main is/, compare("--rev", "main", "--dirty", "x.rb", **settings)
    # Another revision, or another variable, is something to compare.
    [%w[--rev HEAD~1 --dirty], %w[--dirty --and --env A=1 --rev HEAD]].each do |sides|
      assert_equal 3, compare("--pairs", "1", *sides, "x.rb", **settings).status.exitstatus, sides.inspect
    end
  end

  # --- two recordings ---

  def test_two_recordings
    %w[a b].each do |name|
      words = ["--quiet", "--record", "#{name}.pit", "--", RUBY, "-e", CommandLine.busy(0.2)]
      assert_equal 0, pitwall("profile", *words).status.exitstatus
    end
    result = pitwall("compare", "a.pit", "b.pit")
    assert_equal 0, result.status.exitstatus, result.err
    assert_match(/a\.pit/, result.out)
    assert_equal "pitwall/compare-1", JSON.parse(pitwall("compare", "--format", "json", "a.pit", "b.pit").out)["schema"]
    {
      %w[a.pit] => /\Apitwall: a\.pit: one recording .*: pitwall compare a\.pit OTHER\.pit$/,
      %w[a.pit b.pit c.pit] => /c\.pit: two recordings are compared; .*--before FILE/,
      %w[a.pit x.rb] => /a\.pit: a recording is compared with another/,
      %w[--env A=1 a.pit] => /a\.pit: a recording is compared/
    }.each { |files, message| assert_one_line 2, message, compare(*files) }
    bytes = File.binread(file("b.pit"))
    File.binwrite(file("b.pit"), bytes.tap { bytes.setbyte(bytes.size / 2, bytes.getbyte(bytes.size / 2) ^ 0xff) })
    assert_one_line 5, /b\.pit: damaged .*--salvage/, pitwall("compare", "a.pit", "b.pit")
    assert_equal 0, pitwall("compare", "--salvage", "a.pit", "b.pit").status.exitstatus
    assert_one_line 2, /--salvage: is for recordings/, compare("--salvage", "--env", "A=1", "x.rb")
    write("b.pit", "no recording")
    assert_one_line 5, /b\.pit/, pitwall("compare", "a.pit", "b.pit")
  end

  # --- Ctrl-C ---

  def test_ctrl_c_shows_what_was_measured
    write("x.rb", "Pitwall.bench { |x| x.report('nap') { sleep 0.01 } }")
    pid = pitwall_start("compare", "--pairs", "1000", "--record", "kept.jsonl", "--env", "A=1", "x.rb")
    eventually { File.exist?(file("kept.jsonl")) && File.read(file("kept.jsonl")).scan("\"values\"").size > 3 }
    Process.kill("INT", pid)
    assert_equal 3, wait(pid) { Process.kill("KILL", pid) }.exitstatus
    assert_match(/\AUndecided whether A=1 .*^! Interrupted: this is what had been measured/m, File.read(file("out")))
    assert_nothing_left
  end

  private

  def write(name, source) = File.write(file(name), source)

  def compare(*arguments, **options) = pitwall("compare", *QUICK, *arguments, **options)

  def naps(*options, from: 0.01, to: 0.05)
    compare(*options, "--env", "NAP=#{from}", "--env", "NAP=#{to}", "--", "sh", "-c", "exec sleep $NAP")
  end

  # Without what the developer's setting adds.
  def pitwall(*arguments, env: {}, **options)
    result = super(*arguments, env: { "PITWALL_DEBUG" => nil }.merge(env), **options)
    result.out.force_encoding(Encoding::UTF_8)
    result
  end

  def stuck
    write("stuck.rb", "Pitwall.bench { |x| x.report('nap') { spawn('sleep', '600'); sleep } }")
    compare("--timeout", "2.5", "--env", "A=1", "stuck.rb")
  end

  def revisions
    git("init", "-q", "-b", "main")
    write("repository/x.rb", "require_relative 'lib'\nPitwall.bench { |x| x.report('make') { make } }")
    [1, 11].each do |count|
      write("repository/lib.rb", "def make = #{count}.times { Object.new }")
      git("add", "lib.rb", "x.rb")
      git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "#{count} objects")
    end
    write("repository/lib.rb", "raise 'not committed'")
  end

  def git(*arguments) = assert(system("git", *arguments, chdir: file("repository"), out: File::NULL))

  def tree = Dir.glob("**/*", File::FNM_DOTMATCH, base: file("repository"))
end
