# frozen_string_literal: true

require_relative "recorded_program"

# Programs that collect garbage.
module CollectingProgram
  include RecordedProgram

  ALLOCATING = <<~'RUBY'
    KEEP = Array.new(200_000) { |i| [i.to_s] }
    def allocating
      limit = cpu + 0.4
      Array.new(500) { |i| { id: i, name: "object #{i}", list: [i] } } while cpu < limit
    end
    def computing = burn(0.1)
    before = GC.count
    record do
      GC.start
      computing
      allocating
      3.times { GC.start }
    end
    p GC.count - before
  RUBY

  def gc_nodes(tree)
    (1...tree.size).select { |node| tree.methods[tree.node_methods[node]].kind == Pitwall::Record::Frame::GC }
  end
end
