# frozen_string_literal: true

require_relative "../test_helper"
require "shellwords"
require_relative "../support/command_line"
require "pitwall/cli"
require "pitwall/duration"
require "minitest/mock"
require "stringio"

class CLITest < Minitest::Test
  include CommandLine

  # A verb that does what a test wants.
  class Probe
    class << self
      attr_accessor :body
      def summary = "a probe"
    end

    def initialize(out:, err:) # rubocop:disable Lint/UnusedMethodArgument
      @out = out
    end

    def call(_args) = self.class.body.call(@out)
  end

  def run_cli(*argv)
    @out, @err = StringIO.new, StringIO.new
    Pitwall::CLI.run(argv, out: @out, err: @err)
  end

  def probe(&body)
    Probe.body = body
    Pitwall::CLI.stub(:command, ->(_verb) { Probe }) { run_cli("probe") }
  end

  def test_a_full_disk_under_standard_output_is_one_line
    assert_path_exists "/dev/full"
    %w[--help --version completion\ bash].each do |words|
      full = ["sh", "-c", "exec \"$@\" >/dev/full", "sh"]
      result = capture({ "PITWALL_DEBUG" => nil }, *full, RUBY, *START, *words.split)
      assert_one_line 2, /\Apitwall: cannot write standard output: No space left on device$/, result, words
    end
  end

  def test_words_of_any_bytes_are_told_in_one_line
    [["report", "\xFF.pit"], ["report", "no\nfile\e[31m"], ["profile", "--mode", "x\ny", "--", "true"],
     ["profile", "--", "no\ncmd"], ["no\nverb"], ["report", "--view\xFF"], ["report", "x.pit", "--view", "\xFF"],
     ["report", "x.pit", "--limit", "\xFF"], ["view", "\xFF"], ["report", "x", "--label", "a\nb"]].each do |words|
      run_cli(*words)
      assert_equal 1, @err.string.lines.size, @err.string
      refute_match(/this is a bug|[\e]/, @err.string)
      assert_predicate @err.string, :valid_encoding?
    end
  end

  def test_help_lists_every_verb_with_its_summary_and_the_statuses
    assert_equal 0, run_cli("--help")
    Pitwall::CLI::COMMANDS.each_key do |verb|
      assert_match(/^  #{verb} +\S/, @out.string)
      assert_includes @out.string, Pitwall::CLI.command(verb).summary
    end
    Pitwall::CLI::STATUSES.each do |status, meaning|
      assert_match(/^  #{status}  #{Regexp.escape(meaning)}$/, @out.string)
    end
    assert_match(/127 not found/, @out.string)
    assert_operator @out.string.lines(chomp: true).map(&:size).max, :<=, 80
    assert_empty @err.string
  end

  def test_every_status_is_explained
    statuses = Pitwall::Status.constants.map { |name| Pitwall::Status.const_get(name) }
    assert_equal statuses.sort, Pitwall::CLI::STATUSES.keys.sort
  end

  def test_every_verb_has_help
    Pitwall::CLI::COMMANDS.each_key do |verb|
      assert_equal 0, run_cli(verb, "--help"), verb
      assert_match(/\Ausage: pitwall #{verb} /, @out.string)
      assert_operator @out.string.lines(chomp: true).map(&:size).max, :<=, 80, verb
      assert_match(/\n\n +-h, --help/, @out.string)
      assert_empty @err.string
      assert_equal 0, run_cli("help", verb), verb
    end
  end

  def test_version
    assert_equal 0, run_cli("--version")
    assert_equal "pitwall #{Pitwall::VERSION}\n", @out.string
  end

  # OptionParser of Ruby 3.1 takes only names that are declared as they stand: `--[no-]x` is neither `--x` nor `--no-x`.
  def test_options_are_declared_as_they_are_typed
    Pitwall::CLI::COMMANDS.each_key do |verb|
      command = Pitwall::CLI.command(verb)
      switches = [command, *command.other_forms].flat_map { |form| form.new(out: nil, err: nil).switches }
      assert_empty switches.flat_map { |switch| switch.short + switch.long }.grep(/\[/), verb
    end
  end

  # Each verb's help ends with two commands that are right.
  def test_every_help_ends_with_two_examples
    Pitwall::CLI::COMMANDS.each_key do |verb|
      command = Pitwall::CLI.command(verb)
      lines = command.examples.flat_map { |example, meaning| ["  # #{meaning}", "  #{example}"] }
      assert_equal 4, lines.size, verb
      run_cli(verb, "--help")
      assert_equal lines, @out.string.lines(chomp: true).last(4)
      switches = [command, *command.other_forms].flat_map { |form| form.new(out: nil, err: nil).switches }
      known = switches.flat_map { |switch| switch.short + switch.long }
      command.examples.each do |example, _|
        line = example.sub(/<\((.*)\)/, '\1').sub(/ > \S+\z/, "")
        words = Shellwords.split(line).drop_while { |word| word != "pitwall" }
        assert_equal ["pitwall", verb], words.first(2)
        assert_empty words.drop(2).take_while { |word| word != "--" }.grep(/\A-/) - known, example
      end
    end
  end

  def test_without_arguments_the_help_is_an_error
    assert_equal 2, run_cli
    assert_empty @out.string
    assert_match(/usage: pitwall VERB/, @err.string)
  end

  def test_an_unknown_verb_is_one_line_with_a_guess
    assert_equal 2, run_cli("profil")
    assert_equal "pitwall: unknown verb profil (did you mean profile?); `pitwall --help` lists them\n", @err.string
    assert_equal 2, run_cli("zzz")
    assert_equal "pitwall: unknown verb zzz; `pitwall --help` lists them\n", @err.string
  end

  def test_an_unknown_action_is_one_line_with_a_guess
    { %w[boot cache stat] => "boot cache: unknown action stat (did you mean stats?): " \
                             "build, verify, lazy, prune, stats, clear",
      %w[boot cache zzz] => "boot cache: unknown action zzz: build, verify, lazy, prune, stats, clear",
      %w[history ad] => "no action ad (did you mean add?); there are add, show, changes, export, send" }
      .each do |words, line|
        assert_equal [2, "pitwall: #{line}\n"], [run_cli(*words), @err.string]
      end
  end

  def test_an_unknown_option_is_one_line_with_a_guess
    assert_equal 2, run_cli("doctor", "--fromat", "json")
    assert_equal "pitwall: unknown option --fromat (did you mean --format?); " \
                 "`pitwall doctor --help` lists the options\n", @err.string
    assert_equal 2, run_cli("--verbose")
    assert_match(/\Apitwall: unknown option --verbose/, @err.string)
  end

  def test_options_are_not_abbreviated
    assert_equal 2, run_cli("doctor", "--form", "json")
    assert_match(/unknown option --form /, @err.string)
  end

  def test_a_wrong_or_missing_value_is_one_line
    assert_equal 2, run_cli("doctor", "--format", "yaml")
    assert_equal "pitwall: --format yaml: it takes text, json\n", @err.string
    assert_equal 2, run_cli("report", "x.pit", "--limit", "some")
    assert_equal "pitwall: --limit some: it takes a number\n", @err.string
    assert_equal 2, run_cli("report", "x.pit", "--gc", "x")
    assert_equal "pitwall: --gc x: it takes happened, apart, caller\n", @err.string
    assert_equal 2, run_cli("doctor", "--format")
    assert_equal "pitwall: --format needs a value; `pitwall doctor --help` lists the options\n", @err.string
  end

  def test_a_value_may_follow_an_equals_sign
    assert_equal 2, run_cli("report", "--limit=0", "x.pit")
    assert_equal "pitwall: --limit 0: must be 1 or more\n", @err.string
    assert_equal 2, run_cli("report", "--limit=", "x.pit")
    assert_match(/\Apitwall: --limit : it takes a number/, @err.string)
    assert_equal 2, run_cli("report", "--form=json", "x.pit")
    assert_match(/unknown option --form /, @err.string)
    command = Pitwall::CLI.command("profile").new(out: @out, err: @err)
    words = %w[--mode=safepoint --out=- --limit 3 --quiet ruby --mode=x -v]
    assert_equal ["ruby", "--mode=x", "-v"], command.send(:parse, words)
    assert_equal({ mode: "safepoint", out: "-", limit: 3, quiet: true }, command.instance_variable_get(:@options))
  end

  def test_an_error_of_pitwall_is_one_line_and_its_status
    { Pitwall::UsageError => 2, Pitwall::CannotMeasure => 4, Pitwall::BadRecording => 5 }.each do |error, status|
      assert_equal status, probe { raise error, "x.pit: no good" }
      assert_equal "pitwall: x.pit: no good\n", @err.string
    end
  end

  def test_an_unexpected_error_asks_for_a_report
    assert_equal 4, probe { raise "first\nsecond" }
    assert_match(/\Apitwall: RuntimeError: first; this is a bug: .*PITWALL_DEBUG=1.*\n\z/, @err.string)
    ENV["PITWALL_DEBUG"] = "1"
    probe { raise "first" }
    assert_match(/cli_test\.rb:\d+/, @err.string)
  ensure
    ENV.delete("PITWALL_DEBUG")
  end

  def test_interrupt_and_a_reader_that_has_gone
    assert_equal 130, probe { raise Interrupt }
    assert_empty @err.string
    assert_equal 130, probe { begin; raise Interrupt; ensure; raise "RubyGems was loading"; end }
    assert_empty @err.string
    assert_equal 0, probe { |out| out.puts("x"); raise Errno::EPIPE }
    assert_empty @err.string
  end

  def test_an_ending_tells_the_signal
    Probe.body = ->(_out) { Pitwall::CLI::Ending.killed_by("TERM") }
    ending = Pitwall::CLI.stub(:command, ->(_verb) { Probe }) do
      Pitwall::CLI.ending(["probe"], out: StringIO.new, err: StringIO.new)
    end
    assert_equal [143, 15], [ending.status, ending.signal]
  end

  def test_the_process_survives_a_closed_standard_output
    reader, writer = IO.pipe
    reader.close
    pid = pitwall_start("--help", out: writer)
    writer.close
    Process.wait(pid)
    assert_equal "", File.read(file("err"))
    assert_equal 0, $?.exitstatus
  end

  def test_durations
    range = 100_000..1_000_000_000
    {
      "100us" => 100_000, "100µs" => 100_000, "1ms" => 1_000_000, "0.25 ms" => 250_000, "1s" => 1_000_000_000,
      "500000ns" => 500_000
    }.each do |text, ns|
      assert_equal ns, Pitwall::Duration.parse(text, name: "--interval", range: range), text
    end
    ["", "1", "ms", "-1ms", "1e3us", "1m", "99us", "1.1s", "1ms\n2"].each do |text|
      error = assert_raises(Pitwall::UsageError, text) do
        Pitwall::Duration.parse(text, name: "--interval", range: range)
      end
      assert_match(/\A--interval /, error.message)
    end
    formatted = [100_000, 1_000_000_000, 1_500_000, 0].map { |ns| Pitwall::Duration.format(ns) }
    assert_equal %w[100us 1s 1.5ms 0ns], formatted
  end
end
