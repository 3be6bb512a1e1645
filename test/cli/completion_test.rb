# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require "pitwall/cli"
require "pitwall/cli/verbs/completion"
require "pitwall/show"
require "io/wait"
require "pty"
require "stringio"

# The scripts in the shells themselves: what they offer when a key asks for it.
class CompletionTest < Minitest::Test
  include CommandLine

  VERBS = Pitwall::CLI::COMMANDS.keys
  FORMATS = Pitwall::Show::Export.names.sort.freeze

  def script(shell)
    out = StringIO.new
    assert_equal 0, Pitwall::CLI.run(["completion", shell], out: out, err: out), out.string
    file("pitwall.#{shell}").tap { |path| File.write(path, out.string) }
  end

  def here(shell)
    folders = ENV["PATH"].split(":")
    found = folders.any? { |dir| File.executable?(File.join(dir, shell)) }
    skip "peer absent: #{shell} (apt-get install #{shell})" unless found
    %w[a.pit b.jsonl c.txt].each { |name| File.write(file(name), "") }
    Dir.mkdir(file("some folder"))
  end

  # Every option that a verb's help shows, and every one of its words.
  def test_all_that_the_parsers_know_is_there
    scripts = %w[bash zsh fish].to_h { |shell| [shell, File.read(script(shell))] }
    VERBS.each do |verb|
      help = StringIO.new
      Pitwall::CLI.run([verb, "--help"], out: help, err: help)
      Pitwall::CLI.command(verb).other_forms.each do |form|
        Pitwall::CLI.run([*form.verb.split, "--help", "--"], out: help, err: help)
      end
      options = help.string.scan(/^ {4}(?: {4})?((?:-\w, )?--[\w\[\]-]+|-\w)/).flatten
      names = options.flat_map { |name| name.split(", ") }.uniq
      assert_includes names, "--help"
      known = Pitwall::CLI::Completion.verbs.find { |one| one.name == verb }.names
      assert_equal names.sort, known.sort, verb
      names.each do |name|
        assert_includes scripts["bash"], name
        assert_includes scripts["zsh"], name
        in_fish = name.start_with?("--") ? "-l #{name.delete_prefix("--")}" : "-s #{name.delete_prefix("-")}"
        assert_includes scripts["fish"], in_fish
      end
    end
  end

  # What stands in the sources, each verb's own file and what it includes: read with no help of the parser.
  def test_no_option_of_the_sources_is_missing
    declared = Dir[File.expand_path("../../lib/pitwall/{cli,views}/**/*.rb", __dir__)].flat_map do |path|
      calls = File.read(path).scan(/\.on\((.*?)\)\s*(?:\{|do\b)/m).flatten
      calls.flat_map { |arguments| arguments.scan(/(?<=")-(?:-(?:\[no-\])?)?[a-z][a-z-]*/) }
    end
    names = declared.uniq
    assert_empty names.grep(/\[/)
    assert_operator names.size, :>, 60
    assert_empty names - Pitwall::CLI::Completion.verbs.flat_map(&:names)
  end

  # --- bash ---

  def bash(*words)
    @bash ||= script("bash")
    code = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); ' \
           '[[ $(complete -p pitwall) == *"-F _pitwall pitwall" ]] && _pitwall; printf "%s\n" "${COMPREPLY[@]}"'
    result = capture({}, "bash", "--norc", "--noprofile", "-c", code, "bash", @bash, "pitwall", *words)
    assert_equal "", result.err
    result.out.lines(chomp: true).reject(&:empty?).sort - [".tmp"]
  end

  def test_bash
    here("bash")
    assert_equal [*VERBS, "help", "--help", "--version"].sort, bash("")
    assert_equal ["profile"], bash("prof")
    assert_equal VERBS.sort, bash("help", "")
    assert_equal FORMATS, bash("export", "a.pit", "--to", "")
    assert_equal ["pprof"], bash("export", "--to", "=", "pp")
    assert_equal FORMATS, bash("export", "--to", "=")
    assert_equal ["some folder"], bash("export", "--out", "so")
    assert_equal ["a.pit"], bash("report", "a.p")
    assert_equal ["a.pit", "some folder"], bash("export", "")
    assert_equal ["a.pit", "b.jsonl", "some folder"], bash("view", "")
    assert_equal ["c.txt"], bash("export", "c")
    assert_equal ["a.pit"], bash("profile", "--record", "a")
    assert_equal ["--start", "--strace"], bash("syscalls", "--st")
    assert_equal ["c.txt"], bash("syscalls", "c")
    assert_equal %w[--threshold --thread --time --tree].sort, bash("report", "--t") - ["--to"]
    assert_includes bash("report", "--view", "")    , "gc-cost"
    assert_equal ["path,class"], bash("allocations", "--by", "path,cl")
    assert_equal ["--no-bundle"], bash("compare", "--no-b")
    assert_equal %w[bash fish zsh], bash("completion", "")
    assert_empty bash("profile", "--interval", "")
  end

  def test_bash_leaves_the_users_command_to_it
    here("bash")
    assert_includes bash("profile", "--interval", "1ms", "--", "bas"), "bash"
    assert_includes bash("profile", "--interval", "1ms", "bas"), "bash"
    assert_equal ["a.pit"], bash("profile", "--", "cat", "--to", "a.")
    assert_equal ["a.pit"], bash("trace", "cat", "a.")
    assert_equal ["a.pit"], bash("bench", "a.")
    assert_includes bash("bench", "--", "bas"), "bash"
  end

  # --- fish ---

  def fish(line)
    @fish ||= script("fish")
    environment = { "HOME" => @dir, "XDG_CONFIG_HOME" => nil }
    code = "source $argv[1]; complete -C $argv[2]"
    result = capture(environment, "fish", "--no-config", "-c", code, @fish, line)
    assert_equal "", result.err
    result.out.lines(chomp: true).map { |words| words.split("\t").first }.sort
  end

  def test_fish
    here("fish")
    assert_equal [*VERBS, "help"].sort, fish("pitwall ")
    assert_equal FORMATS, fish("pitwall export a.pit --to ")
    assert_equal ["--to=pprof"], fish("pitwall export --to=pp")
    assert_equal ["some folder/"], fish("pitwall export --out so").map { |name| name.delete("\\") }
    assert_equal ["a.pit"], fish("pitwall report a.p")
    assert_equal ["a.pit", "some folder/"], fish("pitwall export ").map { |name| name.delete("\\") }
    assert_equal ["c.txt"], fish("pitwall export c")
    assert_equal ["a.pit"], fish("pitwall profile --record a")
    assert_equal ["--no-bundle"], fish("pitwall compare --no-b")
    assert_equal %w[bash fish zsh], fish("pitwall completion ")
    assert_includes fish("pitwall report --view "), "gc-cost"
    assert_includes fish("pitwall profile --interval 1ms -- bas"), "bash"
    assert_includes fish("pitwall profile --interval 1ms bas"), "bash"
    assert_equal ["a.pit"], fish("pitwall profile --mode signal -- cat a.")
    assert_includes fish("pitwall profile --mode "), "safepoint"
    refute_includes fish("pitwall profile -- cat --mo"), "--mode"
  end

  # --- zsh ---

  # What it lists when asked (control-D) for each line.
  def zsh(*lines)
    setup = "PS1= PS2= RPS1= LISTMAX=10000; unset zle_bracketed_paste; unsetopt beep prompt_cr prompt_sp; " \
            "autoload -Uz compinit; compinit -u -d #{file("dump")}; source #{script("zsh")}; " \
            "zstyle ':completion:*' verbose no; zstyle ':completion:*' list-colors ''; cd #{@dir}\n"
    listed = []
    environment = CLEAN.merge("HOME" => @dir, "ZDOTDIR" => @dir, "TERM" => "dumb", "LINES" => "100", "COLUMNS" => "200")
    PTY.spawn(environment, "zsh", "-f", "-i") do |out, input, pid|
      input.write(setup)
      input.write("echo REA''DY\n")
      read_until(out, /^READY\s*$/)
      listed = lines.map do |line|
        input.write("#{line}\x04")
        # The output has the line, the list, and the line once more. A control-D that came before the line editor was
        # ready went to the terminal, so it is sent again.
        listing = /#{Regexp.escape(line.strip)}[^\n]*\n.*#{Regexp.escape(line)}\z/m
        list = read_until(out, listing) { input.write("\x04") }
        input.write("\x15echo DO''NE\n")
        read_until(out, /^DONE\s*$/)
        list
      end
    ensure
      input.write("\x15exit\n") rescue nil
      Process.kill("KILL", pid) rescue nil
    end
    listed
  end

  def read_until(out, pattern)
    raw = +""
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 120
    until (text = raw.gsub(/\e\[[\d;?]*[a-z]/i, "").delete("\r")).match?(pattern)
      flunk "zsh said only #{raw.inspect}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      if out.wait_readable(2) then raw << out.readpartial(4096)
      elsif block_given? then yield
      end
    end
    text
  end

  def test_zsh
    here("zsh")
    lines = ["pitwall ", "pitwall export a.pit --to ", "pitwall report a", "pitwall report --view ",
             "pitwall profile --mode signal -- bas", "pitwall trace cat a", "pitwall completion ",
             "pitwall export ", "pitwall export c"]
    verbs, formats, files, views, commands, operands, shells, exports, others = zsh(*lines)
    VERBS.each { |verb| assert_match(/\b#{verb}\b/, verbs) }
    FORMATS.each { |format| assert_match(/\b#{format}\b/, formats) }
    assert_match(/a\.pit/, files)
    assert_match(/a\.pit/, exports)
    refute_match(/c\.txt/, exports)
    assert_match(/c\.txt/, others)
    assert_match(/gc-cost/, views)
    assert_match(/\bbash\b/, commands)
    assert_match(/a\.pit/, operands)
    assert_match(/bash +fish +zsh/, shells)
  end

  def test_mistakes
    {
      [] => "bash|zsh|fish", ["tcsh"] => "it is there for bash, zsh, fish", %w[bash zsh] => "leave out zsh"
    }.each do |arguments, message|
      err = StringIO.new
      out = StringIO.new
      assert_equal [2, ""], [Pitwall::CLI.run(["completion", *arguments], out: out, err: err), out.string]
      assert_includes err.string, message
    end
  end
end
