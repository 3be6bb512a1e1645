# frozen_string_literal: true

require "rbconfig"
require "stringio"
require "pitwall"
require "pitwall/cli"
require_relative "checks"
require_relative "shell_words"

# The commands that documents show, and what is wrong with them: each line of a shell block, what reports suggest in
# their sample output ("proof: pitwall …"), and code spans that begin with a command, a verb or an option.
class DocumentedCommands
  # in_block: a whole command that can be run; else a part of one.
  Command = Struct.new(:document, :line, :words, :in_block) do
    def text = words.join(" ")
    def pitwall? = words.first == "pitwall"
  end

  # What stands for something of the reader's. A command is `ruby x.rb`.
  PLACEHOLDERS = {
    "CMD" => %w[ruby x.rb], "FILE" => ["x.pit"], "FILE.pit…" => ["x.pit"], "A.pit" => ["before.pit"],
    "B.pit" => ["after.pit"], "LOG" => ["boot.log"], "LOG2" => ["after.log"], "[LOG2]" => ["after.log"],
    "FOLDER" => ["tmp/pitwall"], "FORMAT" => ["pprof"], "MODE" => ["signal"], "N" => ["3"], "1/N" => ["1/50"],
    "PID" => ["1"], "VERB" => ["profile"], "NAME=VALUE" => ["route=show"], "DIR@REV" => ["ruby@main"],
    "[STAGE...]" => [], "EXPR" => ["calls > 1"], "…" => []
  }.freeze
  # Code spans that begin as a command does and are none.
  NAMES = ["pitwall drain", "pitwall window"].freeze
  # Options of other programs.
  OTHERS = {
    "--with-modular-gc" => "Ruby's configure", "--yjit" => "ruby", "--zjit" => "ruby", "--pid" => "rbspy",
    "--d3-flamegraph" => "stackprof", "--stackcollapse" => "stackprof", "--export-json" => "hyperfine",
    "--export-markdown" => "hyperfine", "--parameter-scan" => "hyperfine", "--list" => "test/peers/gem_suites",
    "--write" => "benchmarks/run", "--quick" => "benchmarks/run", "--minutes" => "benchmarks/run",
    "--cases" => "benchmarks/run", "--beside" => "benchmarks/run", "--sN" => "the page's style sheet"
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
      shell_lines(block).flat_map do |line, text|
        ShellWords.commands(text).map { |words| Command.new(document.name, line, words, true) }
      end
    end
    spans = document.spans.filter_map do |span|
      words = words_of(span.text)
      Command.new(document.name, span.line, words, false) if words
    end
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
    unless block.language == "sh"
      return numbered.filter_map { |number, line| [number, line[SUGGESTION, 1]] if line.match?(SUGGESTION) }
    end

    numbered.slice_when { |(_, line), _| !line.match?(/[\\|]\n\z/) }
      .map { |lines| [lines.first.first, lines.map(&:last).join] }
  end

  def words_of(span)
    return if NAMES.include?(span)

    first, rest = span.split(" ", 2)
    words = ShellWords.commands(span).first
    return ["pitwall", *words] if verbs.include?(first) && rest.to_s.match?(/--|\.pit\b/)

    words if first == "pitwall" || first.match?(/\A--[a-z]/) || first.match?(OURS)
  end

  # "bash|zsh|fish" → "bash"
  def alternatives(word) = word.match?(/\A[a-z]+(?:\|[a-z]+)+\z/) ? word[/\A[a-z]+/] : word

  def verbs = Pitwall::CLI::COMMANDS.keys

  # Of this repository; the words of its own programs are judged by wrong_of_ours.
  def missing_file(command)
    return if command.words.first.match?(OURS)

    checks = DocumentChecks.new(@root)
    paths = command.words.grep(DocumentChecks::PATH) - DocumentChecks::READERS_PATHS
    path = paths.find { |word| !checks.there?(word, command.document) }
    "there is no #{path}" if path
  end

  def wrong_of_pitwall(command)
    verb, *arguments = concrete(command.words.drop(1))
    return if verb.nil? || %w[--help --version].include?(verb)

    form = Pitwall::CLI.command(verb)
    if verb == "boot" && arguments.first == "cache" # a form with a word of its own
      form = Pitwall::CLI::BootCache
      arguments = arguments.drop(1)
    elsif arguments.include?("--") && !form.runs_command?
      form = form.other_forms.find(&:runs_command?) || form
    end
    return if !command.in_block && needs_value?(form, arguments.last)

    form.new(out: StringIO.new, err: StringIO.new).send(:parse, arguments)
    nil
  rescue Pitwall::Error => error
    error.message
  end

  # `pitwall compare --predicted` names an option without its value.
  def needs_value?(form, word)
    switch = switches(form).find { |candidate| candidate.long.include?(word) }
    switch&.arg && !switch.is_a?(OptionParser::Switch::OptionalArgument)
  end

  def switches(form) = form.new(out: StringIO.new, err: StringIO.new).switches

  def wrong_option(word)
    name = word[/\A--[a-z0-9-]+/]
    "no verb has this option" unless options.include?(name) || OTHERS.key?(name) || OTHERS.key?(word)
  end

  def options
    forms = verbs.flat_map { |verb| [Pitwall::CLI.command(verb), *Pitwall::CLI.command(verb).other_forms] }
    @options ||= (forms + [Pitwall::CLI::BootCache])
      .flat_map { |form| switches(form).flat_map(&:long) }.uniq
  end

  def wrong_of_ours(command)
    program, *arguments = concrete(command.words)
    return "there is no such program" unless File.executable?(File.join(@root, program))

    arguments = arguments.take_while { |word| word != "--" }
    options = arguments.each_cons(2).select { |option, word| option.start_with?("--") && !word.start_with?("--") }
    wrong = (arguments - options.map(&:last)).find { |word| !known?(program, word) }
    "#{program} knows no #{wrong}" if wrong
  end

  # A file or folder, a benchmark, a task of rake, or a word of the program's own text.
  def known?(program, word)
    case program
    when "script/rake" then tasks.include?(word)
    when "benchmarks/run"
      return sources(program).include?(word) if word.start_with?("--")

      word == "NAME" || File.file?(File.join(@root, "benchmarks/#{word}.rb"))
    else
      return in_text?(sources(program), word) if word.match?(/\A(?:--)?[a-z]+(?:-[a-z]+)*\z/)
      return true if !word.match?(%r{\A(?:test|lib|script)/}) || DocumentChecks::READERS_PATHS.include?(word)

      File.exist?(File.join(@root, word.sub(/:\d+\z/, "")))
    end
  end

  def in_text?(text, word) = text.match?(/(?<![\w-])#{Regexp.escape(word)}(?![\w-])/)

  # The program's text, with that of the files that it loads or starts.
  def sources(program)
    (@sources ||= {})[program] ||= begin
      files = [program]
      files.each do |file|
        named = named_in(read(file), File.dirname(file))
        named += Dir.glob("#{File.dirname(file)}/{witness,support}/*.{rb,yml}", base: @root) if file == program
        files.concat(named.select { |path| File.file?(File.join(@root, path)) } - files)
      end
      files.map { |file| read(file) }.join("\n")
    end
  end

  # Files that a program's text names: "../support/x" in test/peers → test/support/x.rb
  def named_in(text, folder)
    required = text.scan(/require_relative "([^"]+)"/).map { |path,| File.join(folder, "#{path}.rb") }
    (required + text.scan(%r{\bscript/[\w.]+\.(?:rb|bash)\b})).map { |path| path.gsub(%r{[^/]+/\.\./}, "") }
  end

  def read(file) = File.read(File.join(@root, file), encoding: "UTF-8")

  def tasks
    @tasks ||= begin
      list = IO.popen([RbConfig.ruby, "script/rake", "--all", "--tasks"], chdir: @root, err: File::NULL, &:read)
      list.scan(/^rake (\S+)/).flatten
    end
  end
end
