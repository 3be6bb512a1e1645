# frozen_string_literal: true

# A Markdown document in parts: code blocks, paragraphs, headings, links and code spans.
#
#   Document.new("doc/page.md", text).blocks.first.language     # => "sh"
class Document
  # language: "" where none is named; line: number of its first line in the file.
  Block = Struct.new(:language, :line, :text)
  # Lines of a paragraph, of one item of a list, or one row of a table.
  Paragraph = Struct.new(:line, :lines) do
    def table? = lines.first.start_with?("|")
    def text = lines.map(&:strip).join(" ")
  end
  # A code span, as `Array#each`.
  Span = Struct.new(:line, :text)

  FENCE = /\A\s*```(\w*)/.freeze
  ITEM = /\A\s*(?:[-*]|\d+\.)\s/.freeze
  HEADING = /\A#+ /.freeze

  # Every document that people read.
  #: (String) -> Array[String]
  def self.names(root)
    found = %w[doc/**/*.md benchmarks/*.md examples/**/*.md].flat_map { |pattern| Dir.glob(pattern, base: root).sort }
    %w[README.md CHANGELOG.md CONTRIBUTING.md] + found
  end

  attr_reader :name, :text

  def self.read(root, name) = new(name, File.read(File.join(root, name), encoding: "UTF-8"))

  def initialize(name, text)
    @name = name
    @text = text
  end

  def lines = text.lines(chomp: true)

  def blocks = parts.first

  # In the order of the file.
  def paragraphs = parts.last

  def spans
    paragraphs.flat_map do |paragraph|
      paragraph.text.scan(/(?<!`)`([^`]+)`(?!`)/).map { |span,| Span.new(paragraph.line, span) }
    end
  end

  # [line, target] of each link.
  def links
    paragraphs.flat_map do |paragraph|
      paragraph.text.gsub(/`[^`]*`/, "").scan(/\]\(([^)\s]+)\)/).map { |target,| [paragraph.line, target] }
    end
  end

  # Names by which links find headings, as GitHub makes them: "M:N threads" → "mn-threads".
  def anchors
    headings.map do |heading|
      text = heading.sub(HEADING, "").gsub(/\[([^\]]*)\]\([^)]*\)/, '\1')
      text.downcase.gsub(/[^\p{Alnum}\s_-]/, "").tr(" ", "-")
    end
  end

  private

  def headings = outside.filter_map { |_, line| line if line.match?(HEADING) }

  def outside = numbered.reject { |number, _| covered.include?(number) }

  # Numbers of the lines of code blocks, fences included.
  def covered
    @covered ||= blocks.flat_map { |block| (block.line - 1..block.line + block.text.lines.size).to_a }
  end

  def numbered = lines.each.with_index(1).map { |line, number| [number, line] }

  def parts
    @parts ||= begin
      blocks = []
      paragraphs = []
      block = nil
      open = false
      numbered.each do |number, line|
        if block
          line.match?(FENCE) ? (blocks << block; block = nil) : block.text << line << "\n"
        elsif (language = line[FENCE, 1])
          block = Block.new(language, number + 1, +"")
          open = false
        elsif line.strip.empty? || line.match?(HEADING)
          open = false
        elsif open && !line.match?(ITEM) && !line.start_with?("|")
          paragraphs.last.lines << line
        else
          paragraphs << Paragraph.new(number, [line])
          open = !line.start_with?("|")
        end
      end
      [blocks, paragraphs]
    end
  end
end
