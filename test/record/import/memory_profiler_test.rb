# frozen_string_literal: true

require_relative "../../test_helper"
require_relative "../../support/imported"

class ImportMemoryProfilerTest < Minitest::Test
  include Imported

  RESULTS = { "total_allocated" => 10, "total_allocated_memsize" => 500, "total_retained" => 1, "total_retained_memsize" => 40,
              "allocated_objects_by_location" => [{ "data" => "/app/a.rb:12", "count" => 6 }, { "data" => "b.rb:3", "count" => 3 }],
              "allocated_memory_by_location" => [{ "data" => "/app/a.rb:12", "count" => 300 }],
              "retained_objects_by_location" => [{ "data" => "b.rb:3", "count" => 1 }], "retained_memory_by_location" => [{ "data" => "b.rb:3", "count" => 40 }],
              "allocated_objects_by_class" => [{ "data" => "String", "count" => 10 }] }.freeze

  def sites(recording)
    segment = recording.segments.first
    segment.sites.to_h { |site| [[site.node.zero? ? site.class_name : segment.frame(site.node).path, segment.lines[site.node]], site.to_h.values_at(:count, :bytes, :retained, :retained_bytes)] }
  end

  def test_places
    assert_equal({ ["/app/a.rb", 12] => [6, 300, 0, 0], ["b.rb", 3] => [3, 0, 1, 40], ["", 0] => [1, 200, 0, 0] }, sites(imported(JSON.generate(RESULTS))))
  end

  def test_classes
    assert_equal({ ["String", 0] => [10, 0, 0, 0] }, sites(imported(JSON.generate(RESULTS.slice("total_allocated", "allocated_objects_by_class")))))
    assert_equal [10, 500], sites(imported(JSON.generate(RESULTS), type: "class")).values.transpose.first(2).map(&:sum)
    assert_match(/has no figure file: it has location, class/, refused(JSON.generate(RESULTS), type: "file"))
  end

  def test_real_results_keep_the_totals
    told = JSON.parse(real("memory_profiler/results.json"))
    totals = told.values_at("total_allocated", "total_allocated_memsize", "total_retained", "total_retained_memsize")
    %w[location class file gem].each do |list|
      assert_equal totals, sites(imported(real("memory_profiler/results.json"), type: list)).values.transpose.map(&:sum), list
    end
    assert_match(/\A\d+ bytes \(\d+ objects\)/, real("memory_profiler/print.txt")[/Total allocated: (.*)/, 1])
  end

  def test_what_is_damaged_is_named
    { "the count of x is -1, not a count" => [{ "data" => "x", "count" => -1 }],
      "the name of a row is 3, not text" => [{ "data" => 3, "count" => 1 }],
      "a row of allocated_objects_by_location is 3, not an object" => [3] }.each do |message, list|
      assert_includes refused(JSON.generate("allocated_objects_by_location" => list)), message
    end
  end
end
