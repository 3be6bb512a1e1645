# frozen_string_literal: true

require_relative "test_helper"
require "stringio"
require "tmpdir"
require "pitwall"
require "pitwall/cli"
require "pitwall/record"
require "pitwall/analyse"
require "pitwall/show"
require_relative "support/command_line"
require_relative "support/documents/checks"
require_relative "support/documents/commands"
require_relative "support/documents/sandbox"

# Every command in the documents is one that this version takes. The verb's own parser reads all of them. Those whose
# input a test can provide are run: views, exports and comparisons of recordings, logs of system calls, and one program
# under each recording verb.
class DocsCommandsTest < Minitest::Test
  include CommandLine

  ROOT = Checkout::ROOT
  # Generated tables of figures with the commands that made them.
  DOCUMENTS = (Document.names(ROOT) - %w[benchmarks/RESULTS.md]).freeze

  # What no test can run here, by the beginning of its text, and why. Such a command's program, options and files are
  # checked all the same.
  NOT_RUN = {
    /\Apitwall view\b/ => "answers a browser until Ctrl-C; test/cli/view_test.rb starts it",
    /\Apitwall bench\b/ => "measures for seconds to minutes; test/cli/bench_test.rb runs it",
    /\Apitwall compare\b(?!.*\.pit \S*\.pit)/ => "measures for seconds to minutes; test/cli/compare_test.rb runs it",
    /\Apitwall history\b/ => "needs files of results; test/history/history_test.rb runs it",
    /\Apitwall prove\b/ => "needs commits and comparisons of them; test/cli/prove_test.rb runs it",
    /\Agit\b/ => "git itself",
    /\Apitwall profile --delay\b/ => "would take as long as its options say; test/cli/window_test.rb runs it",
    /\Apitwall \w+ .*\bbundle exec puma\b/ => "a server does not end; test/peers/servers_test.rb runs one",
    %r{\Apitwall caches .*examples/(?:url_helpers|definitions/routes)} =>
      "needs Rails; test/peers/url_helpers_test.rb runs one",
    /\Apitwall boot cache\b/ => "changes the user's own cache; test/fastboot/fastboot_test.rb runs it",
    /\Apitwall syscalls --(?:start|strace)\b/ => "needs strace; test/peers/strace_test.rb runs it",
    %r{\A(?:script/\w+|\.ci/run)} => "takes minutes or needs root; CI runs it",
    %r{\Atmp/units/} => "is built and run by test/native/units_test.rb",
    %r{\Atest/peers/} => "takes minutes; CI runs it",
    %r{\Abenchmarks/run} => "takes minutes on a quiet machine; script/check benchmarks runs each for a moment",
    /\Agem install\b/ => "needs the network",
    /\A(?:curl|printf|profile-viewer)\b/ => "needs a server or a browser",
    /\Ago tool pprof\b/ => "needs Go; test/peers/pprof_test.rb runs it",
    /\A(?:hyperfine|strace|perf)\b/ => "another tool, beside ours",
    /\Asource\b/ => "a part of the shell; test/cli/completion_test.rb completes in one",
    /\A(?:ruby (?:examples|drive|prepare)|bin\/)/ => "an example alone, without Pitwall"
  }.freeze

  # Ruby blocks that are run, by document and a line of theirs, with what stands before them. The others are compiled.
  RUBY_BLOCKS = {
    ["doc/commands.md", "Pitwall.profile(record:"] => "Order = Module.new { def self.checkout(cart) = cart }\ncart = 1",
    ["doc/servers.md", "Pitwall.label(route:"] => "def … = 1",
    ["doc/servers.md", "require \"pitwall/rack\""] => <<~RUBY,
      def use(middleware) = middleware
      module Sidekiq; def self.configure_server; end; end
    RUBY
    ["doc/servers.md", "# config/puma.rb"] => "",
    ["doc/guides/production.md", "Pitwall.continuous"] => "",
    ["doc/budgets.md", "class InvoiceTest"] => <<~RUBY
      ARGV.push("--no-plugins")
      require "minitest/autorun"
      Invoice = Struct.new(:number) { def line(item) = item.to_s }
      Minitest::Test.include(Module.new { def setup = @invoice = Invoice.new })
    RUBY
  }.freeze

  def test_every_command_is_one
    assert_empty(in_sandbox { |commands| documented(commands).filter_map { |command| commands.problem(command) } })
  end

  def test_commands_that_read_files_work
    ran = 0
    problems = in_sandbox do |commands|
      to_run(commands).reject { |command, words| recording?(words) || !command.pitwall? }.filter_map do |command, words|
        ran += 1
        failure_of(command, words.flat_map { |word| word.include?("*") ? Dir[word].sort : [word] })
      end
    end
    assert_empty problems
    assert_operator ran, :>, 80
  end

  # Each set of options once, whatever program the document has: here a small one.
  def test_commands_that_record_work
    all = in_sandbox { |commands| to_run(commands).select { |command, words| command.pitwall? && recording?(words) } }
    different = all.uniq { |_, words| shortened(words) }
    assert_operator different.size, :>, 10
    File.write(file("x.rb"), DocumentedSandbox::PROGRAM)
    problems = different.filter_map do |command, words|
      next if words.first == "syscalls" && !syscalls_seen?

      result = pitwall(*shortened(words), "--record", "r.pit", "--", "ruby", "x.rb")
      next if result.status.success?

      "#{command.document}:#{command.line}: `#{command.text}` has status #{result.status}: #{result.err}"
    end
    assert_empty problems
  end

  def test_ruby_that_can_be_run_works
    problems = RUBY_BLOCKS.filter_map do |(name, text), before|
      blocks = Document.read(ROOT, name).blocks.select { |candidate| candidate.language == "ruby" }
      block = blocks.find { |candidate| candidate.text.include?(text) }
      next "#{name} has no Ruby with #{text}: adapt RUBY_BLOCKS in this test" if block.nil?

      File.write(file("block.rb"), "require \"pitwall\"\n#{before}\n#{block.text}")
      result = capture({}, RUBY, "-I#{ROOT}/lib", "-r#{ROOT}/script/checkout", "-e",
                       "Checkout.use_test_gems; load 'block.rb'")
      "#{name}:#{block.line}: status #{result.status}: #{result.err}" unless result.status.success?
    end
    assert_empty problems
  end

  # A command is run, or stands in the list above; and nothing else stands there.
  def test_the_list_of_what_is_not_run_is_right
    all = in_sandbox { |commands| in_blocks(commands).map(&:text) }
    left = all.reject { |text| text.start_with?("pitwall ") || NOT_RUN.keys.any? { |pattern| text.match?(pattern) } }
    assert_empty left
    assert_empty(NOT_RUN.keys.reject { |pattern| all.any? { |text| text.match?(pattern) } })
  end

  # The checks can fail.
  def test_what_is_wrong_is_found
    text = <<~MARKDOWN
      ```sh
      pitwall report x.pit --tree --nonsense   # a wrong option
      pitwall reprot x.pit
      pitwall report x.pit \\
        --view nowhere
      pitwall profile --interval 5 -- ruby examples/none.rb
      A=1 script/test --besides 2
      script/nothing
      script/rake test:nothing
      benchmarks/run sampler/nothing
      ```
      ```
      > A finding
          proof: pitwall compare --dirti -- CMD
      ```
      `pitwall trace --bytes` and `--stacks` are right, `--stakcs` and `report x.pit --tre` are not.
    MARKDOWN
    found = in_sandbox do |commands|
      commands.of(Document.new("a.md", text)).filter_map { |command| commands.problem(command) }
    end
    expected = ["a.md:2: `pitwall report x.pit --tree --nonsense`: unknown option --nonsense",
                "a.md:3: `pitwall reprot x.pit`: unknown verb reprot",
                "a.md:4: `pitwall report x.pit --view nowhere`: --view nowhere: it takes",
                "a.md:6: `pitwall profile --interval 5 -- ruby examples/none.rb`: ",
                "a.md:7: `script/test --besides 2`: script/test knows no --besides",
                "a.md:8: `script/nothing`: there is no such program",
                "a.md:9: `script/rake test:nothing`: script/rake knows no test:nothing",
                "a.md:10: `benchmarks/run sampler/nothing`: benchmarks/run knows no sampler/nothing",
                "a.md:14: `pitwall compare --dirti -- CMD`: unknown option --dirti",
                "a.md:16: `--stakcs`: no verb has this option",
                "a.md:16: `pitwall report x.pit --tre`: unknown option --tre"]
    assert_equal expected, found.each_with_index.map { |problem, at| problem[0, expected[at].to_s.size] }
  end

  # What a recording does not have is found by running, not by parsing.
  def test_a_command_that_fails_is_found
    in_sandbox do |commands|
      command = commands.of(Document.new("a.md", "```sh\npitwall report x.pit --callers No#method\n```\n")).first
      assert_nil commands.problem(command)
      assert_match(/\Aa\.md:2: `pitwall report .*` has status 2: pitwall: no method "No#method"/,
                   failure_of(command, command.words.drop(1)))
    end
  end

  private

  def in_sandbox
    yaml = %w[doc/syscalls.md doc/filters.md].map do |name|
      Document.read(ROOT, name).blocks.find { |block| block.language == "yaml" }.text
    end
    DocumentedSandbox.open(yaml.join("\n")) { yield DocumentedCommands.new(ROOT) }
  end

  def documented(commands) = DOCUMENTS.flat_map { |name| commands.of(Document.read(ROOT, name)) }

  def in_blocks(commands) = documented(commands).select(&:in_block)

  # [command, its words without placeholders] of whole commands, and of code spans that name their files.
  def to_run(commands)
    documented(commands).select { |command| command.in_block || names_its_files?(command.words) }
      .reject { |command| NOT_RUN.keys.any? { |pattern| command.text.match?(pattern) } }
      .map { |command| [command, commands.concrete(command.words.drop(1))] }.uniq(&:last)
  end

  def names_its_files?(words)
    (words & %w[-- NAME PLACE]).empty? && words.drop(2).any? { |word| word.match?(/\.pit\b|\ALOG/) }
  end

  def recording?(words) = words.include?("--")

  # Without the command, and without the name of the file.
  def shortened(words)
    words = words.take_while { |word| word != "--" }
    at = words.index("--record") and words.slice!(at, 2)
    words
  end

  # A comparison may say that B is slower, or that it can't tell.
  def failure_of(command, words)
    err = StringIO.new
    status = Pitwall::CLI.run(words, out: StringIO.new, err: err)
    return if status.zero? || (words.first == "compare" && [1, 3].include?(status))

    "#{command.document}:#{command.line}: `#{command.text}` has status #{status}: #{err.string}"
  end

  def syscalls_seen?
    Pitwall.load_native!
    Pitwall::Native.syscall_dispatch.nil?
  end
end
