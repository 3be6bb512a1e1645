# frozen_string_literal: true

require_relative "../test_helper"
require "fileutils"
require "optparse"
require "tmpdir"
require "pitwall/cli/measuring/sides"

class SidesTest < Minitest::Test
  def setup
    @dir = File.realpath(Dir.mktmpdir("pitwall-sides-"))
    File.write(File.join(@dir, "bench.rb"), "")
  end

  def teardown = FileUtils.rm_rf(@dir)

  def test_each_option_is_a_side_in_the_order_typed
    sides = sides("--rev", "main", "--dirty", "--rev", "HEAD~1")
    assert_equal [["main", "main", false], ["your changes", nil, true], ["HEAD~1", "HEAD~1", false]],
                 sides.map { |side| [side.name, side.rev, side.dirty] }
  end

  def test_and_joins
    sides = sides("--rev", "main", "--and", "--env", "A=1", "--and", "--env", "B=x=y",
                  "--gem", "rack@3.1.0", "--and", "--gem", "rake@13.0.6.pre1")
    assert_equal 2, sides.size
    assert_equal ["main", { "A" => "1", "B" => "x=y" }], [sides[0].rev, sides[0].env]
    assert_equal({ "rack" => "3.1.0", "rake" => "13.0.6.pre1" }, sides[1].gems)
    assert_equal ["main + A=1 + B=x=y", "rack@3.1.0 + rake@13.0.6.pre1"], sides.map(&:name)
  end

  def test_one_alone_is_compared_with_things_as_they_are
    as_is, empty = sides("--stub", "Order#total")
    assert_equal ["as is", nil, false], [as_is.name, as_is.stub, as_is.dirty]
    assert_equal ["without Order#total", "Order#total"], [empty.name, empty.stub]
    head, dirty = sides("--dirty")
    assert_equal ["HEAD", true], [head.rev, dirty.dirty]
  end

  def test_revisions_have_the_names_that_people_give_them
    commit = "0123456789abcdef" * 2 + "01234567"
    revisions = sides("--rev", commit, "--rev", "refs/tags/v1.2", "--rev", "refs/heads/topic", "--rev", "HEAD")
    assert_equal ["01234567", "v1.2", "topic", "HEAD"], revisions.map(&:name)
    system("git", "init", "-q", "-b", "faster", @dir, exception: true)
    assert_equal ["faster", "your changes"], sides("--dirty").map(&:name)
    assert_equal %w[main faster], sides("--rev", "main", "--rev", "HEAD").map(&:name)
    assert_equal %w[faster HEAD], sides("--rev", "faster", "--rev", "HEAD").map(&:name),
                 "two sides are not called the same"
    assert_equal ["HEAD", nil], sides("--dirty").map(&:rev)
  end

  def test_interpreters_and_flags
    sides = sides("--ruby", "ruby3.4 --yjit '-W:no-deprecated'", "--ruby", "/opt/a/bin/ruby",
                  "--ruby", "/opt/b/bin/ruby", "--ruby", "x")
    assert_equal ["ruby3.4", "--yjit", "-W:no-deprecated"], sides.first.ruby
    assert_equal ["ruby3.4 --yjit -W:no-deprecated", "/opt/a/bin/ruby", "/opt/b/bin/ruby", "x"], sides.map(&:name)
    Dir.mkdir(File.join(@dir, "my@ruby"))
    sides = sides("--ruby-src", "my@ruby@HEAD@{1}", "--ruby-src", "#{@dir}/my@ruby@main", "--as", "newer")
    assert_equal [[File.join(@dir, "my@ruby"), "HEAD@{1}"], [File.join(@dir, "my@ruby"), "main"]],
                 sides.map(&:ruby_source)
    assert_equal ["my@ruby@HEAD@{1}", "newer"], sides.map(&:name)
  end

  def test_names_are_unique
    sides = sides("--rev", "main", "--rev", "main", "--rev", "a", "--as", "x", "--rev", "b", "--as", "x",
                  "--rev", "main")
    assert_equal ["main", "main (2)", "x", "x (2)", "main (3)"], sides.map(&:name)
  end

  def test_code
    two = sides("-e", "a = 1\n a + 1", "-e", "[#{"1, " * 40}].sum", script: nil)
    assert_equal %w[A B], two.map(&:name)
    assert_equal %w[A B C], sides("-e", "1", "-e", "2", "-e", "3", script: nil).map(&:name)
    joined = sides("--ruby", "x", "--and", "-e", "1", "--ruby", "x", "--and", "-e", "2",
                   "--ruby", "y", "--and", "-e", "1", script: nil)
    assert_equal ["x + A", "x + B", "y + A"], joined.map(&:name)
    assert_equal "a = 1\n a + 1", two.first.code
    shared = sides("--ruby", "a", "-e", "1", "--ruby", "b", script: nil)
    assert_equal [["a", "1"], ["b", "1"]], shared.map { |side| [side.name, side.code] }
    later = sides("--env", "Y=1", "--and", "-e", "1", script: nil)
    assert_equal [["as is", "1"], ["Y=1", "1"]], later.map { |side| [side.name, side.code] }
    first = sides("-e", "-1.abs", "--env", "Y=1", script: nil)
    assert_equal [["as is", "-1.abs"], ["Y=1", "-1.abs"]], first.map { |side| [side.name, side.code] }
  end

  def test_patches
    %w[fast.rb fix.diff].each { |name| File.write(File.join(@dir, name), "") }
    as_is, both = sides("--patch", "fast.rb", "--and", "--patch", "fix.diff")
    refute_predicate as_is, :tree?
    assert_equal [[File.join(@dir, "fix.diff")], [File.join(@dir, "fast.rb")]], [both.diffs, both.scripts]
    assert_predicate both, :tree?
    assert_equal "fast.rb + fix.diff", both.name
  end

  def test_settings
    parsed = parse("--rev", "a", "--carry", "config/key", "--carry", ".env", "--no-bundle",
                   "--configure", "CFLAGS='-O1 -g' --with-x")
    assert_equal({ carry: ["config/key", ".env"], configure: ["CFLAGS=-O1 -g", "--with-x"], bundle: false },
                 parsed.settings)
    assert_predicate parsed, :any?
    refute_predicate parse, :any?
    assert_equal parsed.to_a(script: "bench.rb"), parsed.to_a(script: "bench.rb")
  end

  def test_mistakes
    {
      ["--and", "--rev", "a"] => "--and: no side", ["--rev", "a", "--and"] => "--and: no option",
      ["--rev", "a", "--and", "--and", "--env", "A=1"] => "twice in a row",
      ["--rev", "a", "--and", "--rev", "b"] => "--rev twice",
      ["--rev", "a", "--and", "--dirty"] => "--dirty and --rev can't",
      ["--env", "A=1", "--and", "--env", "A=2"] => "A twice", ["--env", "A"] => "write NAME=VALUE",
      ["--gem", "rack"] => "--gem rack: write NAME@VERSION", ["--gem", "rack@new"] => "write NAME@VERSION",
      ["--patch", "no.rb"] => "--patch no.rb: no such file", ["--patch", "bench.txt"] => "no such file",
      ["--stub", "order"] => "write Class#method", ["--ruby", "x 'y"] => "isn't closed",
      ["--ruby", ""] => "needs a value", ["--ruby-src", "nowhere@main"] => "write DIR@REV",
      ["--as", "x"] => "no side stands before", ["-e", "1", "-e", "2"] => "-e and bench.rb",
      [] => "nothing to compare"
    }.each do |options, message|
      error = assert_raises(Pitwall::UsageError, options.inspect) { sides(*options) }
      assert_includes error.message, message
      assert_equal 1, error.message.lines.size
    end
    {
      [["-e", "1"], {}] => "nothing to compare it with", [["--rev", "a"], {}] => "nothing to run",
      [["-e", "1", "-e", "2", "--rev", "a"], {}] => "a: no code",
      [["-e", "1", "-e", "2"], { command: ["x"] }] => "-e and -- x",
      [["--stub", "A#b"], { command: ["x"] }] => "not with -- x",
      [["--rev", "a"], { script: "no.rb" }] => "git show REV:no.rb",
      [["--env", "A=1"], { script: "bench.rb", command: ["x"] }] => "bench.rb and -- x"
    }.each do |(options, what), message|
      error = assert_raises(Pitwall::UsageError, options.inspect) { parse(*options).to_a(**what) }
      assert_includes error.message, message
    end
  end

  private

  def parse(*options)
    sides = Pitwall::CLI::Sides.new(dir: @dir)
    rest = OptionParser.new { |parser| sides.define_options(parser) }.parse(options)
    assert_empty rest
    sides
  end

  def sides(*options, script: "bench.rb") = parse(*options).to_a(script: script)
end
