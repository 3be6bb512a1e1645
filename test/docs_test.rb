# frozen_string_literal: true

require_relative "test_helper"
require "pitwall"
require "pitwall/cli"
require "pitwall/record"
require "pitwall/analyse"
require "pitwall/show"
require_relative "support/documents/checks"

# What the documentation says is there, is; and what is public is documented. The commands in it: docs_commands_test.rb.
class DocsTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  # benchmarks/RESULTS.md is written by the benchmarks.
  DOCUMENTS = (Document.names(ROOT) - %w[benchmarks/RESULTS.md]).map { |name| Document.read(ROOT, name) }.freeze

  # At most 100 columns and six lines a paragraph; tables are whole; links, headings and files exist; Ruby compiles;
  # JSON and YAML parse.
  def test_documents_are_in_order
    checks = DocumentChecks.new(ROOT)
    assert_empty(DOCUMENTS.flat_map { |document| checks.all(document) })
  end

  def test_links_of_the_results_lead_somewhere
    assert_empty DocumentChecks.new(ROOT).links(Document.read(ROOT, "benchmarks/RESULTS.md"))
  end

  # Each check can fail.
  def test_what_is_wrong_in_a_document_is_found
    long = "One line of a paragraph.\n" * 7
    text = <<~MARKDOWN
      # A title: with `code`
      [here](#a-title-with-code), [there](#nowhere), [file](none.md), [heading](doc/page.md#nothing), [right](README.md)
      `lib/pitwall/none.rb`, `lib/pitwall/*.rb`, `Foo#bar`

      #{long}
      #{"- item\n" * 9}
      | a | b |
      |---|---|
      | `a|b` | 1 |
      | 2 |

      ```ruby
      def broken(
      ```
      ```json
      { "a": }
      ```
      ```sh
      curl -d '{"a": [}'
      ```
      ```yaml
      a: [
      ```
      #{"wide " * 21}
    MARKDOWN
    found = DocumentChecks.new(ROOT).all(Document.new("a.md", text))
    expected = ["a.md:2: 114 columns", "a.md:40: 105 columns", "a.md:5: a paragraph of 7 lines",
                "a.md:26: a row of 1 cells in a table of 2", "a.md:2: links to #nowhere: no such heading",
                "a.md:2: links to none.md, which does not exist",
                "a.md:2: links to doc/page.md#nothing: no such heading",
                "a.md:2: names lib/pitwall/none.rb, which does not exist", "a.md:29: Ruby that does not compile",
                "a.md:32: JSON that does not parse", "a.md:35: JSON that does not parse",
                "a.md:38: YAML that does not parse"]
    assert_equal expected, found.each_with_index.map { |problem, at| problem[0, expected[at].to_s.size] }
  end

  # In comments, errors and help.
  def test_documents_that_the_code_names_exist
    patterns = %w[{lib,ext,exe,script,test,page/src,examples,benchmarks}/**/*.{rb,c,h,js,bash,md} {script,exe}/*
                  *.gemspec]
    files = Dir.glob(patterns, base: ROOT).select { |file| File.file?(File.join(ROOT, file)) }
    missing = files.flat_map do |file|
      named = read(file).scrub.scan(%r{(?<![\w/.-])doc/[\w/-]+\.md}).uniq
      named.reject { |name| File.file?(File.join(ROOT, name)) }.map { |name| "#{file} names #{name}" }
    end
    assert_empty missing
  end

  # Files of C and Ruby, by the end of their paths.
  def test_files_that_the_architecture_names_exist
    known = Dir.chdir(ROOT) { Dir["{lib,ext,exe,script,doc,test}/**/*"] }
    %w[doc/architecture.md doc/internals.md doc/rules.md].each do |document|
      read(document).scan(/`([\w\/.-]+\.(?:rb|c|h|md))`/).flatten.uniq.each do |name|
        assert known.any? { |file| file == name || file.end_with?("/#{name}") }, "#{document} names #{name}"
      end
    end
  end

  # doc/changing.md: files below lib/pitwall or the repository; tests without their end. What comes next need not exist.
  def test_files_and_tests_of_the_table_of_changes_exist
    tables, coming = read("doc/changing.md").split("## What comes next")
    rows = tables.scan(/^\| (?!I want)(.*?) \| (.*?) \| (.*?) \|$/)
    assert_operator rows.size, :>, 40
    missing = rows.flat_map do |change, files, tests|
      places = files.scan(/`([\w.]+\/[\w.\/]*|\w+\.(?:rb|h|c))`/).flatten
      unknown = places.reject { |path| place?(path, places.first[%r{.*(?=/)}]) }
      unknown += tests.scan(/`([^`]+)`/).flatten.reject { |path| test?(path) }
      unknown.map { |path| "#{change}: #{path}" }
    end
    assert_empty missing
    named = tables.scan(%r{`((?:ext|page|test|doc|script|lib)/[\w./]+)`}).flatten
    assert_empty(named.reject { |path| File.exist?(File.join(ROOT, path)) })
    similar = coming.scan(/^\| (?!capability|-).* \| `(.*?)` \|$/).flatten
    assert_operator similar.size, :>=, 3
    assert_empty(similar.reject { |path| place?(path, ".") })
    DocumentChecks::PLANNED.each do |path|
      refute_path_exists File.join(ROOT, path), "take it out of PLANNED, and write its rows in doc/changing.md"
    end
  end

  def test_the_table_of_exit_statuses_is_the_commands
    table = read("README.md").scan(/^\| (\d) \| (.+?) \|$/)
    assert_equal Pitwall::CLI::STATUSES, table.to_h { |status, meaning| [status.to_i, meaning.delete("`")] }
  end

  def test_every_export_format_is_documented
    Pitwall::Show::Export.names.each do |name|
      assert_match(/^\| `#{name}` \|/, read("doc/formats.md"))
      assert_match(/\b#{name}\b/i, read("README.md"))
    end
  end

  # In the table of all types and in a section of its own.
  def test_every_chunk_type_is_documented
    files = Dir[File.join(ROOT, "lib/pitwall/record/chunks/*.rb")]
    types = files.flat_map { |file| File.read(file).scan(/^ +type "([A-Z]{4})"$/).flatten }.sort
    assert_operator types.size, :>=, 29
    format = read("doc/record-format.md")
    assert_equal types, format.scan(/^### ([A-Z]{4})$/).flatten.sort
    assert_equal types, format.scan(/^\| \[`([A-Z]{4})`\]/).flatten.sort
  end

  def test_every_counter_of_stat_is_documented
    code = read("ext/pitwall/session/counters.h").scan(/COUNTER\(\w+, "(\w+)"/).flatten
    code += read("ext/pitwall/output/chunks.c").scan(/\\"(\w+)\\":%/).flatten
    assert_operator code.size, :>, 15
    (code - %w[marking sweeping]).each { |name| assert_includes read("doc/record-format.md"), "`#{name}`" }
  end

  # A comment right above: what it does, or at least its type line.
  def test_public_methods_are_documented
    methods = public_methods_of(Pitwall)
    assert_operator methods.size, :>, 100
    bare = methods.reject { |file, line| documented?(file, line) }
    assert_empty bare.map { |file, line| "#{file.delete_prefix("#{ROOT}/")}:#{line}" }.sort
  end

  private

  def read(name) = File.read(File.join(ROOT, name), encoding: "UTF-8")

  # "compat.rb" may stand beside the first file of its row.
  def place?(path, beside)
    folders = ["lib/pitwall", ".", beside.to_s, "lib/pitwall/#{beside}"]
    folders.any? { |folder| File.exist?(File.join(ROOT, folder, path)) }
  end

  def test?(path) = File.exist?(File.join(ROOT, "test", path.end_with?("/") ? path : "#{path}_test.rb"))

  def public_methods_of(mod, seen = [])
    return [] if seen.include?(mod)

    seen << mod
    mod.constants.each { |name| mod.const_get(name) if mod.autoload?(name) }
    own = mod.public_instance_methods(false).map { |name| mod.instance_method(name) }
    own += mod.singleton_methods(false).map { |name| mod.method(name) }
    places = own.filter_map(&:source_location).select { |file, _| file.start_with?("#{ROOT}/lib/") && !hidden?(file) }
    inner = mod.constants(false).map { |name| mod.const_get(name) }.grep(Module)
    inner.select! { |constant| name_of(constant).start_with?("Pitwall") }
    places + inner.flat_map { |constant| public_methods_of(constant, seen) }
  end

  # Some have a method `name` of their own.
  def name_of(constant) = Module.instance_method(:name).bind_call(constant).to_s

  # Files whose module or class says `@api private` as a whole.
  def hidden?(file)
    @hidden ||= Hash.new do |known, path|
      pairs = File.readlines(path).each_cons(2)
      known[path] = pairs.any? { |a, b| a.match?(/# @api private/) && b.match?(/^\s*(class|module)\b/) }
    end
    @hidden[file]
  end

  def documented?(file, line)
    @lines ||= Hash.new { |known, path| known[path] = File.readlines(path) }
    lines = @lines[file]
    text = lines[line - 1]
    # Made by Struct.new and the like.
    return true unless text.match?(/^\s*(?:(?:public|private|module_function)\s+)?(?:def|attr_)/)
    return true if text.match?(/def (?:initialize|to_s|inspect|==|hash|eql\?|each|size|method_missing|status)\b/)

    lines[line - 2].match?(/^\s*#/)
  end
end
