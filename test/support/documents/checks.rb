# frozen_string_literal: true

require "json"
require "yaml"
require_relative "document"
require_relative "shell_words"

# What is wrong in a document, apart from its commands: each problem is a line "doc/page.md:12: …".
class DocumentChecks
  COLUMNS = 100
  PARAGRAPH = 6
  # Rows of these tables are written by a script.
  WRITTEN_TABLES = %w[doc/long-checks.md].freeze
  PATH = %r{\A(?:lib|ext|doc|test|script|examples|benchmarks|page|exe|\.ci)/[\w./*-]*\z}.freeze
  # Paths of the reader's own project, which look like ours.
  READERS_PATHS = %w[lib/exports.rb lib/upstream.rb test/cart_test.rb test/ruby/test_io.rb lib/patches/faster.rb].freeze
  # What doc/changing.md says will come.
  PLANNED = [].freeze
  TABLE_RULE = /\A\|[-:| ]+\z/.freeze

  #: (String) -> void
  def initialize(root)
    @root = root
  end

  def all(document)
    layout(document) + links(document) + paths(document) + ruby(document) + data(document)
  end

  # Lines and paragraphs that are too long.
  def layout(document)
    wide = document.lines.each.with_index(1).filter_map do |line, number|
      next if line.size <= COLUMNS || !line.strip.include?(" ")
      next if line.start_with?("|") && WRITTEN_TABLES.include?(document.name)

      problem(document, number, "#{line.size} columns, at most #{COLUMNS}")
    end
    long = document.paragraphs.filter_map do |paragraph|
      size = paragraph.lines.size
      problem(document, paragraph.line, "a paragraph of #{size} lines, at most #{PARAGRAPH}") if size > PARAGRAPH
    end
    wide + long + tables(document)
  end

  def links(document)
    document.links.filter_map do |line, target|
      next if target.match?(/\A\w+:/)

      file, anchor = target.split("#", 2)
      path = file.empty? ? document.name : File.join(File.dirname(document.name), file).delete_prefix("./")
      full = File.expand_path(path, @root)
      if !file.empty? && !File.exist?(full)
        problem(document, line, "links to #{target}, which does not exist")
      elsif anchor && !anchors(document, file.empty? ? nil : full).include?(anchor)
        problem(document, line, "links to #{target}: no such heading")
      end
    end
  end

  # Files that are named in the text.
  def paths(document)
    document.spans.filter_map do |span|
      path = span.text[/\A[^:\s]+/].to_s
      next if !path.match?(PATH) || (READERS_PATHS + PLANNED).include?(path) || there?(path, document.name)

      problem(document, span.line, "names #{path}, which does not exist")
    end
  end

  # In the repository, or beside the document. NAME is any name.
  def there?(path, document)
    pattern = path.gsub("NAME", "*")
    [@root, File.join(@root, File.dirname(document))].any? { |folder| !Dir.glob(pattern, base: folder).empty? }
  end

  # Ruby that does not compile. "…" stands for code that is left out, and compiles as a name.
  def ruby(document)
    document.blocks.select { |block| block.language == "ruby" }.filter_map do |block|
      RubyVM::InstructionSequence.compile(block.text)
      nil
    rescue SyntaxError => error
      problem(document, block.line, "Ruby that does not compile: #{error.message.lines.first.strip}")
    end
  end

  # JSON and YAML: whole blocks, code spans that are one object, and words of shell commands.
  def data(document)
    blocks = document.blocks.flat_map do |block|
      case block.language
      when "json" then [json(document, block.line, block.text)]
      when "yaml" then [yaml(document, block.line, block.text)]
      when "sh" then json_words(block.text).map { |word| json(document, block.line, word) }
      else []
      end
    end
    spans = document.spans.select { |span| span.text.match?(/\A[{\[]\s*"/) }
    (blocks + spans.map { |span| json(document, span.line, span.text.gsub(/: (\w+)/, ": null")) }).compact
  end

  private

  # JSON that a shell command has in quotes; "%s" is for printf.
  def json_words(text)
    text.gsub("\\\n", "").scan(/'([\[{][^']*":[^']*)'/).map { |word,| word.gsub(/(?<!")%s/, "null") }
  end

  # Every row of a table has as many cells as its head.
  def tables(document)
    document.paragraphs.select(&:table?).slice_when { |a, b| b.line != a.line + 1 }.flat_map do |rows|
      unless rows[1]&.text&.match?(TABLE_RULE)
        next [problem(document, rows.first.line, "a table without a line of dashes below its head")]
      end

      cells = rows.map { |row| row.text.gsub(/\\\||`[^`]*`/, "").count("|") - 1 }
      rows.zip(cells).reject { |_, count| count == cells.first }
        .map { |row, count| problem(document, row.line, "a row of #{count} cells in a table of #{cells.first}") }
    end
  end

  def anchors(document, full)
    return document.anchors if full.nil?

    @anchors ||= Hash.new do |known, path|
      known[path] = path.end_with?(".md") ? Document.new(path, File.read(path, encoding: "UTF-8")).anchors : []
    end
    @anchors[full]
  end

  def json(document, line, text)
    JSON.parse(text) && nil
  rescue JSON::ParserError
    problem(document, line, "JSON that does not parse: #{text[0, 60]}")
  end

  def yaml(document, line, text)
    YAML.safe_load(text) && nil
  rescue Psych::Exception
    problem(document, line, "YAML that does not parse")
  end

  def problem(document, line, text) = "#{document.name}:#{line}: #{text}"
end
