# frozen_string_literal: true

require "rbconfig"
require "stringio"
require "pitwall"
require "pitwall/cli"
require_relative "checks"
require_relative "shell_words"

# The commands that documents show, and what is wrong with them: each line of a shell block, what reports suggest in their sample
# output ("proof: pitwall …"), and code spans that begin with a command, a verb or an option.
class DocumentedCommands
  # in_block: a whole command that can be run; else a part of one.
  Command = Struct.new(:document, :line, :words, :in_block) do
    def text = words.join(" ")
    def pitwall? = words.first == "pitwall"
  end

  # What stands for something of the reader's. A command is `ruby x.rb`.
  PLACEHOLDERS = {
    "CMD" => %w[ruby x.rb], "FILE" => ["x.pit"], "FILE.pit…" => ["x.pit"], "A.pit" => ["before.pit"], "B.pit" => ["after.pit"], "LOG" => ["boot.log"],
    "LOG2" => ["after.log"], "[LOG2]" => ["after.log"], "FOLDER" => ["tmp/pitwall"], "FORMAT" => ["pprof"], "MODE" => ["signal"], "N" => ["3"], "1/N" => ["1/50"],
    "PID" => ["1"], "VERB" => ["profile"], "NAME=VALUE" => ["route=show"], "DIR@REV" => ["ruby@main"], "[STAGE...]" => [], "EXPR" => ["calls > 1"], "…" => []
  }.freeze
  # Code spans that begin as a command does and are none.
  NAMES = ["pitwall drain", "pitwall window"].freeze
  # Options of other programs.
  OTHERS = {
    "--with-modular-gc" => "Ruby's configure", "--yjit" => "ruby", "--zjit" => "ruby", "--pid" => "rbspy", "--d3-flamegraph" => "stackprof", "--stackcollapse" => "stackprof",
    "--export-json" => "hyperfine", "--export-markdown" => "hyperfine", "--parameter-scan" => "hyperfine", "--list" => "test/peers/gem_suites", "--write" => "benchmarks/run", "--cases" => "benchmarks/run",
    "--quick" => "benchmarks/run", "--sN" => "the page's style sheet", "--minutes" => "benchmarks/run", "--beside" => "benchmarks/run"
  }.freeze
  # Programs of this repository; options and words that they take stand in their text.
  OURS = %r{\A(?:script/\w+|test/peers/\w+|benchmarks/run|\.ci/run)\z}.freeze
  SUGGESTION = /^\s*(?:more|proof|Next):\s+(pitwall .*)$/.freeze

  #: (String) -> void
  def initialize(root)
    @root = root
  end

  #: (Document) -> Array[Command]
  def of(document)
    blocks = document.blocks.flat_map do |block|
      shell_lines(block).flat_map { |line, text| ShellWords.commands(text).map { |words| Command.new(document.name, line, words, true) } }
    end
    spans = document.spans.filter_map { |span| (words = words_of(span.text)) && Command.new(document.name, span.line, words, false) }
    blocks + spans
  end

  # What is wrong with a command, or nil.
  #: (Command) -> String?
  def problem(command)
    wrong = if command.pitwall? then wrong_of_pitwall(command)
            elsif command.words.first.start_with?("--") then wrong_option(command.words.first)
            elsif command.words.first.match?(OURS) then wrong_of_ours(command)
            end
    wrong ||= missing_file(command)
    "#{command.document}:#{command.line}: `#{command.text}`: #{wrong}" if wrong
  end

  # With files and commands that the tests have, instead of placeholders.
  #: (Array[String]) -> Array[String]
  def concrete(words) = words.flat_map { |word| PLACEHOLDERS.fetch(word) { [alternatives(word)] } }

  private

  # [number, text] of each command line; one that ends with a backslash or a pipe goes on.
  def shell_lines(block)
    numbered = block.text.lines.each.with_index(block.line).map { |line, number| [number, line] }
    return numbered.slice_when { |(_, line), _| !line.match?(/[\\|]\n\z/) }.map { |lines| [lines[0][0], lines.map(&:last).join] } if block.language == "sh"

    numbered.filter_map { |number, line| [number, line[SUGGESTION, 1]] if line.match?(SUGGESTION) }
  end

  def words_of(span)
    return if NAMES.include?(span)

    first, rest = span.split(" ", 2)
    return unless first.match?(OURS) || first == "pitwall" || first.match?(/\A--[a-z]/) || (verbs.include?(first) && rest.to_s.match?(/--|\.pit\b/))

    words = ShellWords.commands(span).first
    verbs.include?(first) && first != "pitwall" ? ["pitwall", *words] : words
  end

  # "bash|zsh|fish" → "bash"
  def alternatives(word) = word.match?(/\A[a-z]+(?:\|[a-z]+)+\z/) ? word[/\A[a-z]+/] : word

  def verbs = Pitwall::CLI::COMMANDS.keys

  # Of this repository; the words of its own programs are judged by wrong_of_ours.
  def missing_file(command)
    return if command.words.first.match?(OURS)

    checks = DocumentChecks.new(@root)
    path = command.words.find { |word| word.match?(DocumentChecks::PATH) && !DocumentChecks::READERS_PATHS.include?(word) && !checks.there?(word, command.document) }
    "there is no #{path}" if path
  end

  def wrong_of_pitwall(command)
    verb, *arguments = concrete(command.words.drop(1))
    return if verb.nil? || %w[--help --version].include?(verb)

    form = Pitwall::CLI.command(verb)
    form = form.other_forms.find(&:runs_command?) || form if arguments.include?("--")
    return if !command.in_block && needs_value?(form, arguments.last)

    form.new(out: StringIO.new, err: StringIO.new).send(:parse, arguments)
    nil
  rescue Pitwall::Error => error
    error.message
  end

  # `pitwall compare --predicted` names an option without its value.
  def needs_value?(form, word)
    word.to_s.start_with?("--") && word != "--" && switch(form, word)&.arg && !switch(form, word).is_a?(OptionParser::Switch::OptionalArgument)
  end

  def switch(form, word) = form.new(out: StringIO.new, err: StringIO.new).switches.find { |switch| switch.long.include?(word) }

  def wrong_option(word)
    name = word[/\A--[a-z0-9-]+/]
    "no verb has this option" unless options.include?(name) || OTHERS.key?(name) || OTHERS.key?(word)
  end

  def options
    @options ||= verbs.flat_map { |verb| [Pitwall::CLI.command(verb), *Pitwall::CLI.command(verb).other_forms] }
      .flat_map { |form| form.new(out: StringIO.new, err: StringIO.new).switches.flat_map(&:long) }.uniq
  end

  def wrong_of_ours(command)
    program, *arguments = concrete(command.words)
    return "there is no such program" unless File.executable?(File.join(@root, program))

    arguments = arguments.take_while { |word| word != "--" }
    values = arguments.each_cons(2).filter_map { |option, word| word if option.start_with?("--") && !word.start_with?("--") }
    wrong = arguments.find { |word| !values.include?(word) && !known?(program, word) }
    "#{program} knows no #{wrong}" if wrong
  end

  # A file or folder, a benchmark, a task of rake, or a word of the program's own text. Values of options are not judged.
  def known?(program, word)
    case program
    when "script/rake" then tasks.include?(word)
    when "benchmarks/run" then word.start_with?("--") ? sources(program).include?(word) : word == "NAME" || File.file?(File.join(@root, "benchmarks/#{word}.rb"))
    else
      return sources(program).match?(/(?<![\w-])#{Regexp.escape(word)}(?![\w-])/) if word.match?(/\A(?:--)?[a-z]+(?:-[a-z]+)*\z/)

      !word.match?(%r{\A(?:test|lib|script)/}) || File.exist?(File.join(@root, word.sub(/:\d+\z/, ""))) || DocumentChecks::READERS_PATHS.include?(word)
    end
  end

  # The program's text, with that of the files that it loads or starts.
  def sources(program)
    (@sources ||= {})[program] ||= begin
      files = [program]
      files.each do |file|
        text = File.read(File.join(@root, file), encoding: "UTF-8")
        named = text.scan(/require_relative "([^"]+)"/).map { |path,| File.join(File.dirname(file), "#{path}.rb") } + text.scan(%r{\bscript/[\w.]+\.(?:rb|bash)\b})
        named += Dir.glob("#{File.dirname(file)}/{witness,support}/*.{rb,yml}", base: @root) if file == program
        files.concat(named.map { |path| path.squeeze("/").gsub(%r{[^/]+/\.\./}, "") }.select { |path| File.file?(File.join(@root, path)) } - files)
      end
      files.map { |file| File.read(File.join(@root, file), encoding: "UTF-8") }.join("\n")
    end
  end

  def tasks
    @tasks ||= Dir.chdir(@root) { IO.popen([RbConfig.ruby, "script/rake", "--all", "--tasks"], err: File::NULL, &:read) }.scan(/^rake (\S+)/).flatten
  end
end
