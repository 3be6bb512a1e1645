# frozen_string_literal: true

require_relative "recording_builder"

# A small trace, the same each time: two threads, recursion, waiting, a frame that was open at the start.
module TracedRecording
  MAIN = ["<main>", "/app/shop.rb", 1, 0].freeze
  SUM = ["Shop#sum", "/app/shop.rb", 3, 0].freeze
  TAX = ["Shop#tax", "/app/shop.rb", 9, 0].freeze
  EACH = ["Array#each", "", 0, 0, 1].freeze
  JOIN = ["Thread#join", "", 0, 0, 1].freeze

  def self.bytes(compress: false, **head)
    RecordingBuilder.build(compress: compress, mode: "none", **head) do |segment|
      segment.thread 1, "main"
      segment.thread 2, "worker"
      segment.calls stack: [MAIN], calls: 0, wall: 1000, cpu: 900, probe: 100, objects: 1, bytes: 40
      segment.calls stack: [MAIN, SUM], calls: 1, wall: 300, cpu: 300 # superseded
      segment.calls stack: [MAIN, SUM], calls: 2, wall: 500, cpu: 500, probe: 50
      segment.calls stack: [MAIN, SUM, EACH], calls: 2, wall: 400, cpu: 400, probe: 500
      segment.calls stack: [MAIN, SUM, EACH, SUM], calls: 6, wall: 600, cpu: 600, objects: 12, bytes: 960
      segment.calls stack: [MAIN, JOIN], calls: 1, wall: 10, wait: 5000
      segment.calls thread: 2, stack: [TAX], calls: 7, wall: 4000, cpu: 3000, objects: 3, bytes: 120
      segment.traced
    end
  end
end
