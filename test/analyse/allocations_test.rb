# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require "pitwall/analyse"
require "pitwall/show"

# Grouped sites are compared with a slow sum, site by site.
class AnalyseAllocationsTest < Minitest::Test
  Allocations = Pitwall::Analyse::Allocations

  def recording(seed) = RandomRecording.new(seed).read

  # The rows of every combination of keys add up to the same totals.
  def test_rows_add_up_whatever_they_are_put_together_by
    10.times do |seed|
      found = Allocations.new(recording(seed).segments)
      sites = found.segments.flat_map(&:sites)
      (1..3).flat_map { |n| Allocations::KEYS.combination(n).to_a }.each do |by|
        rows = found.rows(by: by)
        Allocations::SUMS.each do |counter|
          assert_equal sites.sum { |site| site[counter] }, rows.sum { |row| row[counter] }, [by, counter]
        end
        assert_equal rows.map { |row| row.to_h.values_at(*by) }.uniq.size, rows.size
      end
    end
  end

  # The slow sum by class.
  def test_a_slow_count_by_class
    10.times do |seed|
      found = Allocations.new(recording(seed).segments)
      slow = Hash.new(0)
      found.segments.each do |segment|
        segment.sites.each { |site| slow[site.special || site.class_name] += site.count }
      end
      assert_equal slow, found.rows(by: [:class]).to_h { |row| [row[:class], row.count] }
    end
  end

  def test_the_tree_weighs_what_the_sites_do
    segments = recording(3).segments
    tree = Pitwall::Analyse::CallTreeBuilder.build(segments, weights: %i[objects bytes gc wall])
    sites = segments.flat_map(&:sites)
    program = sites.select(&:program?)
    assert_operator program.size, :<, sites.size
    assert_equal [program.sum(&:count), program.sum(&:bytes), sites.sum(&:gc_ns)],
                 %i[objects bytes gc].map { |weight| tree.total(weight) }
    found = Allocations.new(segments)
    assert_equal [found.objects, found.total(:bytes)], %i[objects bytes].map { |weight| tree.total(weight) }
    plain = Pitwall::Analyse::CallTreeBuilder.build(segments, weights: [:wall])
    assert_equal plain.total(:wall), tree.total(:wall)
  end

  # Ruby's own methods in Ruby count for their callers, as C functions do, if the caller was recorded.
  def test_a_place_in_rubys_own_code_is_its_callers
    map = ["Array#map", "<internal:array>", 240, 246]
    bytes = RecordingBuilder.build do |segment|
      segment.site(5, stack: [["A#a", "/app/a.rb", 1, 3], map], class_name: "Array", type: 7)
      segment.site(6, stack: [["A#a", "/app/a.rb", 1, 3], map, ["block in A#a", "/app/a.rb", 3, 4]])
      segment.site(7, stack: [map], class_name: "Array", type: 7) # without stacks the innermost frame is all there is
    end
    rows = Allocations.new(RandomRecording.read(bytes).segments).rows
    assert_equal [["/app/a.rb", 3, "Array"], ["/app/a.rb", 4, "String"], ["<internal:array>", 246, "Array"]],
                 rows.map { |row| [row.path, row.line, row[:class]] }.sort
  end

  def test_order_and_places
    bytes = RecordingBuilder.build do |segment|
      ruby = ["A#a", "/app/a.rb", 1, 3]
      segment.site(1, type: 0, class_name: "", counters: [100, 0, 0, 0, 0, 0, 0, 0, 0, 5])
      segment.site(5, stack: [ruby, ["Array#map", "", 0, 0, 1]], class_name: "Array", type: 7,
                   counters: [10, 2, 6, 12, 1, 5, 400, 500, 4, 7])
      segment.site(6, stack: [ruby], counters: [30, 0, 30, 30, 1, 1, 1200, 1200, 0, 9])
      segment.site(7, stack: [["C#c", "", 0, 0, 1]], class_name: "", counters: [1, 0, 0, 0, 0, 0, 40, 40, 1, 0])
    end
    found = Allocations.new(RandomRecording.read(bytes).segments)
    rows = found.rows(by: %i[path line class])
    assert_equal [["/app/a.rb", 3, "String"], ["/app/a.rb", 3, "Array"], ["(no Ruby code)", 0, "(hidden)"],
                  ["(VM internal)", 0, ""]],
                 rows.map { |row| row.to_h.values_at(:path, :line, :class) }
    assert_equal [41, 141], [found.objects, found.allocated]
    assert_equal "Array", found.rows(sort: :old).first[:class]
    assert_equal 2, found.rows(by: [:line], retained: true).size
    merged = found.rows(by: [:path]).first
    assert_equal [1, 5], [merged.min_age, merged.max_age]
    assert_in_delta 42 / 40.0, merged.mean_age
    assert_raises(Pitwall::UsageError) { found.rows(by: [:colour]) }
    assert_raises(Pitwall::UsageError) { found.rows(sort: :size) }
  end
end
