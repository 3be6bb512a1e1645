# frozen_string_literal: true

require_relative "recording_builder"
require_relative "../oracle/filters"
require "pitwall/record"

# A small random recording with frames of every origin, made from a seed: threads with their own starts, rows without
# time, lost stacks, open rows, sometimes two processes of which one starts later.
class RandomTree
  GEMS = "/usr/lib/ruby/gems/3.4.0/gems"
  FRAMES = [
    ["Shop#total", "/srv/app/shop.rb", 3, 0], ["Shop#tax", "/srv/app/shop.rb", 9, 0], ["Order#sum", "/srv/app/order.rb", 1, 0],
    ["Rack::Call#call", "#{GEMS}/rack-3.1.8/lib/rack/call.rb", 4, 0], ["Puma::Run#run", "#{GEMS}/puma-6.4/lib/puma/run.rb", 5, 0],
    ["Set#add", "/usr/lib/ruby/3.4.0/set.rb", 7, 0], ["Array#each", "", 0, 1],
    ["(marking)", "", 0, 2], ["memcpy", "/usr/lib/libc.so.6", 0, 3]
  ].freeze
  NAMES = FRAMES.map(&:first).freeze
  UNIT_NS = 1000
  STARTED_NS = RecordingBuilder::HEAD.fetch("started_at_ns")

  # @return [Array<Oracle::Row>]
  attr_reader :rows
  # @return {[segment, thread] => units since the first process started}
  attr_reader :starts

  def initialize(seed)
    random = Random.new(seed)
    @rows = []
    @starts = {}
    builder = RecordingBuilder.new
    random.rand(1..2).times { |number| segment(builder, number, random) }
    @bytes = builder.bytes
  end

  # Written to a file, because rows are read again.
  # @param folder [String] in which the file stays until the next tree
  #: (String) -> Array[Pitwall::Record::Segment]
  def segments(folder)
    path = File.join(folder, "tree.pit")
    File.binwrite(path, @bytes)
    Pitwall::Record.read(path).segments
  end

  # The last unit of any row.
  def length = @rows.group_by { |row| [row.segment, row.thread] }.map { |key, rows| @starts[key] + rows.sum(&:wall) }.max

  private

  def segment(builder, number, random)
    later = number * random.rand(20)
    builder.segment(pid: 10 + number, unit_ns: UNIT_NS, started_at_ns: STARTED_NS + later * UNIT_NS) do |writer|
      (1..2).each do |id|
        start = random.rand(8)
        writer.thread(id, "t#{id}", start_ns: start * UNIT_NS)
        @starts[[number, id]] = later + start
      end
      random.rand(3..9).times do
        row = row(random, number)
        writer.row(**row.to_h.reject { |field,| field == :segment })
        @rows << row
        writer.flush if random.rand(4).zero?
      end
      open = row(random, number).tap { |row| row.captures = 0 }
      writer.open(**open.to_h.slice(:thread, :state, :stack, :wall, :cpu))
      @rows << open
    end
  end

  def row(random, segment)
    wall = random.rand(4).zero? ? 0 : random.rand(1..12)
    Oracle::Row.new(segment, random.rand(1..2), random.rand(3), stack(random), wall, random.rand(9), random.rand(3))
  end

  def stack(random)
    Array.new(random.rand(20).zero? ? 0 : random.rand(1..6)) do
      name, path, first, kind = FRAMES.sample(random: random)
      [name, path, first, kind.zero? ? first + random.rand(2) : 0, kind]
    end
  end
end
