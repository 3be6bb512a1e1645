# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/recorded_program"
require_relative "../../benchmarks/support/peers"
require "pitwall/analyse"

# Objects beside memory_profiler's, where the benchmarks have installed it. doc/allocations.md explains every difference that is let
# through here.
class MemoryProfilerTest < Minitest::Test
  include RecordedProgram

  # Only what stays and is visible: what memory_profiler cannot see is not written here.
  SOURCE = <<~RUBY
    Task = Struct.new(:title, :tags)
    def titles(n) = (0...n).each { |i|
      KEPT << "title"
    }
    def tasks(n) = n.times { |i|
      task = Task.new("task",
                      %w[a b c])
      KEPT << task if i.even?
      { name: task.title }
    }
    def nested(depth)
      return if depth.zero?
      KEPT << [depth]
      nested(depth - 1)
    end
    def work
      titles(500)
      tasks(300)
      nested(100)
      3.times { Object.new }
      nil
    end
  RUBY

  def test_the_same_objects
    path = peer or skip "memory_profiler is not installed (benchmarks/run allocations/overhead does that)"
    File.write(file("work.rb"), SOURCE)
    run_program(<<~RUBY, options: ["-I#{path}"])
      require "memory_profiler"
      load File.expand_path("work.rb")
      KEPT = []
      work # what the first call alone makes (inline caches, method entries) is nobody's matter
      report = MemoryProfiler.report(top: 1000) { work }
      rows = [report.allocated_objects_by_location, report.allocated_objects_by_class].map { |found| found.map { |row| [row[:data], row[:count]].join("\\t") } }
      rows.each_with_index { |lines, at| File.write("peer\#{at}", lines.join("\\n")) }
      Pitwall.allocations(record: "a.pit") { work }
    RUBY
    ours = Pitwall::Analyse::Allocations.new([segment])
    places = ours.rows(by: %i[path line]).reject(&:special).to_h { |row| ["#{row.path}:#{row.line}", row.count.to_i] }
    assert_equal peer_rows("peer0"), places.select { |place, _| place.include?("work.rb") }
    assert_operator places.select { |place, _| place.include?("work.rb") }.size, :>=, 6
    classes = ours.rows(by: %i[class]).reject(&:special).to_h { |row| [row[:class], row.count.to_i] }
    peer_rows("peer1", everywhere: true).each { |name, count| assert_equal count, classes[name], name }
  end

  private

  def peer_rows(name, everywhere: false)
    rows = File.readlines(file(name), chomp: true).to_h { |line| line.split("\t").then { |data, count| [data, count.to_i] } }
    everywhere ? rows : rows.select { |place, _| place.include?("work.rb") }
  end

  # @return [String, nil] what to put on the load path
  def peer
    peers = Benchmarks::Peers.new
    return unless Dir[File.join(Checkout::ROOT, "tmp/benchmarks-bundle/#{RUBY_VERSION}-*/ruby/*/gems/memory_profiler-*")].any?

    peers.paths("memory_profiler").first unless peers.missing("memory_profiler")
  end
end
