# frozen_string_literal: true

require "pitwall/views"

# A view that no release has: how many methods each file has. All that there is to be written of a view stands here.
class ToyView < Pitwall::Views::ReportView
  HEADS = %w[methods file].freeze

  # Adds it to the list as long as the block runs.
  def self.added
    view = Pitwall::Views.add(new)
    yield view
  ensure
    Pitwall::Views.remove(view) if view
  end

  def name = "toy"

  def formats = %w[text json markdown]

  def own_options = %i[toy_least]

  def define_options(parser, options)
    parser.on("--toy-least N", Integer, "of --view toy: files with so many methods") { |n| options[:toy_least] = n }
  end

  def lines(drawing) = rows(drawing.report).map { |path, count| format("%7d  %s", count, path) }

  def fields(rows) = { "toy" => rows(rows.report).map { |path, count| { "file" => path, "methods" => count } } }

  def markdown(subject)
    rows = rows(subject.report, subject.asked[:toy_least] || 1).map { |path, count| [count.to_s, path] }
    Pitwall::Show::Markdown.table(HEADS, rows, left: [1]).join("\n")
  end

  def tabs(segments)
    rows = rows(Pitwall::Analyse::Report.new(segments)).map { |path, count| [count, path] }
    columns = [{ "label" => "methods", "number" => true }, { "label" => "file" }]
    rows.empty? ? [] : [tab("toy", "Toy", columns: columns, rows: rows)]
  end

  private

  def check_needs(subject)
    return unless rows(subject.report).empty?

    raise Pitwall::UsageError, "#{option}: the recording names no file: record one with pitwall profile -- CMD"
  end

  def rows(report, least = 1)
    paths = report.tree.methods.map(&:path).reject(&:empty?)
    paths.tally.select { |_, count| count >= least }.sort_by { |path, count| [-count, path] }
  end
end
