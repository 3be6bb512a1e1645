# frozen_string_literal: true

require "pitwall/record"
require "pitwall/record/header"
require "pitwall/record/chunks"
require "pitwall/record/segment"
require "pitwall/record/tally"

# Segments as a sampler would leave them, made from a seed and without a file: thousands of them in a few seconds.
module SimulatedProfile
  HEAD = { "pid" => 1, "unit_ns" => 1000, "interval_ns" => 1_000_000, "thread_states" => true, "walk" => "own", "mode" => "signal" }.freeze
  module_function

  # @param samples [Array<[Array<String>, Integer]>] stacks from the root and how long each visit lasted, in samples; a
  #   method called "loop" is in another file than all others
  #: (Array[[Array[String], Integer]], ?base: String, **untyped) -> Record::Segment
  def segment(samples, base: "/app", **head)
    frames = {}
    ids = {}
    nodes = {}
    tables = [[0], [0], [0]]
    rows = samples.map do |stack, length|
      leaf = stack.inject(0) do |parent, name|
        id = ids[name] ||= ids.size + 1
        frames[id] ||= Pitwall::Record::Frame.new(id, name, name == "loop" ? "/harness.rb" : "#{base}/lib/app.rb", id * 10, 0)
        nodes[[parent, id]] ||= tables.zip([parent, id, id * 10]).each { |table, value| table << value }.first.first.size - 1
      end
      [leaf, length * 1000]
    end
    build(frames, tables, rows, HEAD.merge(head.transform_keys(&:to_s)))
  end

  def build(frames, tables, rows, head)
    tally = Pitwall::Record::Tally.new(1, 0, tables[0].size)
    rows.each { |node, wall| tally.add(node, wall, wall, (wall / 1000.0).round) }
    Pitwall::Record::Segment.empty.with(
      header: Pitwall::Record::Header.new(head), frames: frames, parents: tables[0], node_frames: tables[1], lines: tables[2],
      threads: { 1 => Pitwall::Record::ThreadInfo.new(1, 1, 0, "main") }, stats: {}, tail: {}, tallies: [tally], row_count: rows.size, open_rows: [],
      row_source: ->(&block) { block.call(sampled(rows)) }
    )
  end

  # A SAMP chunk's rows, as Segment#each_rows gives them.
  def sampled(rows)
    Pitwall::Record::Rows.of(rows.map { |node, wall| [1, 0, node, wall, wall, (wall / 1000.0).round, 0] })
  end

  # A program of so many leaves below six callers: leaf i is sampled with weight weights[i], and stays so long that the next
  # sample is of the same visit with probability `stay`.
  #: (Random, Array[Float], samples: Integer, ?stay: Float) -> Record::Segment
  def program(random, weights, samples:, stay: 0.0)
    sums = weights.each_with_object([]) { |weight, list| list << (list.last || 0) + weight }
    visits = []
    samples.times do
      if visits.any? && random.rand < stay
        visits.last[1] += 1
      else
        drawn = random.rand * sums.last
        leaf = sums.bsearch_index { |sum| sum > drawn }
        visits << [["main", "Caller#c#{leaf % 6}", "Leaf#l#{leaf}"], 1]
      end
    end
    segment(visits)
  end
end
