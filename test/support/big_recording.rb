# frozen_string_literal: true

# Writes a recording like one of a long production run. Its stacks are like a web application's, and it has three
# threads. DEEPEST limits the frames of a stack (default: 60).
#
#   ruby test/support/big_recording.rb tmp/big.pit [ROWS] [STACKS] [DEEPEST]
require_relative "recording_builder"

path, rows, stacks, deepest = ARGV
rows = (rows || 1_000_000).to_i
stacks = (stacks || 20_000).to_i
deepest = (deepest || 60).to_i
random = Random.new(1)

methods = Array.new(4000) do |i|
  name = "App::Module#{i % 97}::Service#{i % 411}#perform_step_#{i}"
  source = "/srv/app/vendor/gems/library-#{i % 60}-1.2.3/lib/library/part_#{i % 300}.rb"
  [name, source, 1 + i * 7 % 900]
end
common = Array.new(25) { |i| [*methods[i], methods[i][2] + 3] }

bytes = RecordingBuilder.build do |segment|
  3.times { |i| segment.thread i + 1, "worker #{i}" }
  walk = common.dup
  nodes = Array.new(stacks) do
    walk = walk.first(random.rand(25..[walk.size, deepest].min))
    random.rand(1..12).times { m = methods[(random.rand**3 * methods.size).to_i]; walk << [*m, m[2] + random.rand(8)] }
    segment.node(walk)
  end
  segment.flush
  table = RecordingBuilder
  done = 0
  while done < rows
    n = [5000, rows - done].min
    column = Array.new(n) { nodes[(random.rand**2 * stacks).to_i] }
    wall = Array.new(n) { 900 + random.rand(300) }
    cpu = wall.map { |w| random.rand(4).zero? ? 0 : w - random.rand(90) }
    thread = Array.new(n) { |i| 1 + i / 3 % 3 }
    state = cpu.map { |c| c.zero? ? 2 : 0 }
    columns = [table.runs(thread), table.runs(state), table.column(column), table.column(wall), table.column(cpu)]
    captures = table.runs([1] * n)
    segment.chunk("SAMP", [n].pack("w") + columns.join + captures)
    done += n
  end
  warn "#{nodes.max} nodes"
end
File.binwrite(path, bytes)
