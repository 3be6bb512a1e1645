# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/cli"
require "pitwall/cli/measuring/progress"
require "pitwall/workspace/build_log"
require "stringio"

# What a terminal shows while something is measured.
class ProgressTest < Minitest::Test
  # A terminal of so many columns.
  Terminal = Class.new(StringIO) do
    attr_accessor :columns

    def tty? = true
    def winsize = [24, columns]
  end

  def terminal(columns = 80) = Terminal.new.tap { |io| io.columns = columns }

  def expected(columns = 80, **what)
    io = terminal(columns)
    Pitwall::CLI::Progress.on(io).expect(**what)
    io.string
  end

  def test_how_long_it_takes_at_most_is_said_beforehand
    assert_equal "1 case: at most 30 s, 90 s if pairs are slow\n", expected(cases: 1, seconds: 30.0, longest: 89.5)
    assert_equal "4 cases: at most 2 min, 6 min if pairs are slow\n", expected(cases: 4, seconds: 30.0, longest: 90.0)
    assert_equal "2 cases: 1 pair, at most 10 s, 30 s if pairs are slow\n",
                 expected(cases: 2, seconds: 5.0, longest: 15.0, pairs: 1)
    assert_equal "4 cases: at most 2 min\n", expected(40, cases: 4, seconds: 30.0, longest: 90.0)
  end

  def test_the_rest_is_one_line_that_goes
    io = terminal
    progress = Pitwall::CLI::Progress.on(io)
    log = Pitwall::Workspace::BuildLog.new(side: "your changes (3f2a1bc)", path: "log", on_step: progress.method(:step))
    ["git init", "git checkout", "bundle install"].each { |step| log.step(step) }
    progress.end
    refute_includes io.string, "git"
    refute_includes io.string, "\n"
    clone = "your changes (3f2a1bc): preparing a clone…"
    assert_equal [clone, clone, "your changes (3f2a1bc): bundle install…"], io.string.split("\r\e[K")
  end

  def test_elsewhere_there_is_none
    io = StringIO.new
    Pitwall::CLI::Progress.on(io).expect(cases: 1, seconds: 30.0, longest: 90.0)
    Pitwall::CLI::Progress.on(terminal, quiet: true).expect(cases: 1, seconds: 30.0, longest: 90.0)
    assert_empty io.string
  end
end
