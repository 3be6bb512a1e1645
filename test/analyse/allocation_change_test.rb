# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require "pitwall/analyse"

class AllocationChangeTest < Minitest::Test
  AllocationChange = Pitwall::Analyse::AllocationChange

  # @param sites [Hash{Array => Array(Integer, Integer)}] [path, line, method, class] → objects, bytes
  def recording(sites, sampled: nil)
    content = RecordingBuilder.build(mode: "none") do |segment|
      segment.site(1, type: 0, class_name: "", counters: [700, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
      sites.each_with_index do |((path, line, method, klass), (count, bytes)), at|
        segment.site(5 + at, stack: [[method, path, 1, line]], class_name: klass,
                     counters: [count, 0, count, 0, 0, 0, bytes, bytes, 0, 0, 0])
      end
      segment.allocation_totals(seen: sites.values.sum(&:first) * sampled) if sampled
    end
    RandomRecording.read(content).segments
  end

  LOAD = ["/app/order.rb", 3, "Order#load", "String"].freeze
  LIST = ["/app/order.rb", 9, "Order#list", "Array"].freeze
  OLD = ["/app/order.rb", 20, "Order#old", "Hash"].freeze
  NEW = ["/app/order.rb", 30, "Order#new", "Hash"].freeze

  def compare(a, b, **options) = AllocationChange.new([a, b], **options)

  def test_sites_and_totals
    change = compare([recording({ LOAD => [100, 4000], LIST => [50, 9000], OLD => [5, 800] })],
                     [recording({ LOAD => [160, 6400], LIST => [50, 9000], NEW => [7, 280] })])
    assert_equal [[155, 13_800, 217, 15_680], [0, 0]],
                 [[:a, :b].flat_map { |side| change.totals.values_at(:objects, :bytes).map(&side) },
                  change.totals[:retained].to_h.values_at(:a, :b)]
    assert_equal [["Order#load", 60, 2400], ["Order#old", -5, -800], ["Order#new", 7, 280]],
                 change.changed.map { |row| [row.method, row.objects.change, row.bytes.change] }
    assert_equal [[3, 3], [20, nil], [nil, 30]], change.changed.map(&:lines)
    assert_equal 4, change.rows.size
    assert change.exact?
    assert_empty compare(*[[recording({ LOAD => [100, 4000] })]] * 2).changed
  end

  # Lines and folders differ between two checkouts.
  def test_moved_code_is_the_same_site
    at = ->(path, *lines) { lines.to_h { |line| [[path, line, "Order#load", "String"], [line < 10 ? 10 : 20, 400]] } }
    change = compare([recording(at.call("/a/order.rb", 3, 11))], [recording(at.call("/b/order.rb", 8, 16))],
                     bases: ["/a", "/b"])
    assert_empty change.changed
    assert_equal [[3, 8], [11, 16]], change.rows.map(&:lines).sort
    assert_equal ["/b/order.rb"], change.rows.map(&:path).uniq
    # They do not match if a line was added or removed.
    change = compare([recording(at.call("/a/order.rb", 3))], [recording(at.call("/a/order.rb", 4, 5))])
    assert_equal 3, change.changed.size
  end

  def test_a_change_counts_beyond_the_range_of_each_sides_runs
    runs = ->(*counts) { counts.map { |count| recording({ LOAD => [count, count * 40], LIST => [9, 90] }) } }
    assert_empty compare(runs.call(100, 110), runs.call(105, 120)).changed
    change = compare(runs.call(100, 110), runs.call(120, 140))
    assert_equal [["Order#load", 105, 130, 10, 40]], change.changed.map { |row| [row.method, *row.objects.to_a] }
  end

  def test_samples_have_doubt
    few = compare([recording({ LOAD => [40, 1600] }, sampled: 10)], [recording({ LOAD => [48, 1920] }, sampled: 10)])
    refute few.exact?
    assert_empty few.changed
    assert_equal [400, 480], few.rows.first.objects.to_a.first(2)
    assert_equal 80, few.totals[:objects].low, "how many there were in all is known"
    refute few.totals[:bytes].changed?
    many = compare([recording({ LOAD => [40_000, 1600] }, sampled: 10)],
                   [recording({ LOAD => [48_000, 1920] }, sampled: 10)])
    delta = many.changed.fetch(0).objects
    assert_in_delta 1.96 * 10 * Math.sqrt(88_000), (delta.high - delta.low) / 2, 1
    # A site without samples on one side may still have been there.
    assert_empty compare([recording({ LOAD => [400, 1600] }, sampled: 100)],
                         [recording({ LOAD => [400, 1600], NEW => [1, 40] }, sampled: 100)]).changed
  end
end
