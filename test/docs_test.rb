# frozen_string_literal: true

require_relative "test_helper"
require "pitwall"
require "pitwall/cli"
require "pitwall/record"
require "pitwall/analyse"
require "pitwall/show"

# What the documentation says is there, is; and what is public is documented.
class DocsTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  DOCUMENTS = Dir.chdir(ROOT) { %w[README.md CHANGELOG.md CONTRIBUTING.md] + Dir["doc/**/*.md"] + Dir["benchmarks/*.md"] }.freeze

  def test_links_lead_somewhere
    DOCUMENTS.each do |document|
      read(document).scan(/\]\(([^)#]+?)(?:#[^)]*)?\)/).flatten.grep_v(/\Ahttps?:/).each do |target|
        assert_path_exists File.expand_path(target, File.join(ROOT, File.dirname(document))), "#{document} links to #{target}"
      end
    end
  end

  def test_files_that_the_architecture_names_exist
    known = Dir.chdir(ROOT) { Dir["{lib,ext,exe,script,doc,test}/**/*"] }
    read("doc/architecture.md").scan(/`([\w\/.-]+\.(?:rb|c|h|md))`/).flatten.uniq.each do |name|
      assert known.any? { |file| file == name || file.end_with?("/#{name}") }, "doc/architecture.md names #{name}"
    end
  end

  def test_options_in_the_readme_are_options_of_the_command
    read("README.md").scan(/^(?:script\/)?pitwall (\w+) ([^#\n]*)/) do |verb, rest|
      help = StringIO.new
      assert_equal 0, Pitwall::CLI.run([verb, "--help"], out: help, err: help), verb
      rest[/\A.*?(?= -- |\z)/].scan(/--[a-z-]+/).each { |option| assert_includes help.string, option, "README: pitwall #{verb} #{rest}" }
    end
  end

  def test_the_table_of_exit_statuses_is_the_commands
    table = read("README.md").scan(/^\| (\d) \| (.+?) \|$/).to_h { |status, meaning| [status.to_i, meaning.delete("`")] }
    assert_equal Pitwall::CLI::STATUSES, table
  end

  def test_every_export_format_is_documented
    Pitwall::Show::Export.names.each do |name|
      assert_match(/^\| `#{name}` \|/, read("doc/formats.md"))
      assert_match(/\b#{name}\b/i, read("README.md"))
    end
  end

  def test_every_counter_of_stat_is_documented
    code = read("ext/pitwall/session/counters.h").scan(/COUNTER\(\w+, "(\w+)"/).flatten + read("ext/pitwall/output/chunks.c").scan(/\\"(\w+)\\":%/).flatten
    assert_operator code.size, :>, 15
    code.each { |name| assert_includes read("doc/record-format.md"), "`#{name}`" unless %w[marking sweeping].include?(name) }
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

  def public_methods_of(mod, seen = [])
    return [] if seen.include?(mod)

    seen << mod
    mod.constants.each { |name| mod.const_get(name) if mod.autoload?(name) }
    own = mod.public_instance_methods(false).map { |name| mod.instance_method(name) } + mod.singleton_methods(false).map { |name| mod.method(name) }
    places = own.filter_map(&:source_location).select { |file, _| file.start_with?("#{ROOT}/lib/") && !hidden?(file) }
    inner = mod.constants(false).map { |name| mod.const_get(name) }.grep(Module).select { |constant| name_of(constant).start_with?("Pitwall") }
    places + inner.flat_map { |constant| public_methods_of(constant, seen) }
  end

  # Some have a method `name` of their own.
  def name_of(constant) = Module.instance_method(:name).bind_call(constant).to_s

  # Files whose module or class says `@api private` as a whole.
  def hidden?(file)
    @hidden ||= Hash.new { |known, path| known[path] = File.readlines(path).each_cons(2).any? { |a, b| a.match?(/# @api private/) && b.match?(/^\s*(class|module)\b/) } }
    @hidden[file]
  end

  def documented?(file, line)
    @lines ||= Hash.new { |known, path| known[path] = File.readlines(path) }
    lines = @lines[file]
    text = lines[line - 1]
    return true unless text.match?(/^\s*(?:(?:public|private|module_function)\s+)?(?:def|attr_)/) # made by Struct.new and the like
    return true if text.match?(/def (?:initialize|to_s|inspect|==|hash|eql\?|each|size|method_missing|status)\b/)

    lines[line - 2].match?(/^\s*#/)
  end
end
