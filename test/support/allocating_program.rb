# frozen_string_literal: true

require_relative "recorded_program"
require "pitwall/analyse"

# Programs whose objects are counted, each in a process of its own.
module AllocatingProgram
  include RecordedProgram

  # What such programs have besides: a recording without samples, of every object.
  ALLOCATING = <<~RUBY
    def follow(name = "a.pit", options = {}, mode: "none", **settings, &block)
      record(name, mode: mode, collectors: { "allocations" => options }, **settings, &block)
    end

    def follow_from_here(name = "a.pit", options = {}, mode: "none", **settings)
      start(name, mode: mode, collectors: { "allocations" => options }, **settings)
    end
  RUBY

  def command(source, **options) = super(ALLOCATING.tr("\n", ";") + source, **options)

  def allocations(name = "a.pit") = Pitwall::Analyse::Allocations.new(read(name).segments)

  # Counts (or another counter) by line of the program and class.
  #: (?String, ?Symbol) -> Hash[[Integer, String], Integer]
  def by_line(name = "a.pit", counter = :count)
    rows = allocations(name).rows.select { |row| row.path.end_with?("program.rb") }
    rows.to_h { |row| [[row.line, row[:class]], row[counter]] }
  end

  # What holds of each recording that was stopped, and nothing but the objects can be wrong about.
  # @param moved [Boolean] compaction moved objects, which Ruby 3.4 counts as allocated once more
  # @param ractors [Boolean] there were Ractors, after whose end Ruby may count more than it tells of
  def assert_balanced(segment, moved: false, ractors: false)
    totals = segment.allocation_totals
    assert totals, "no ALLO"
    counted = segment.sites.sum(&:count)
    assert_operator totals.allocated, :>=, counted
    assert_equal totals.allocated, counted, "all rows against Ruby's own count" unless ractors || (moved && RUBY_VERSION >= "3.4")
    assert_equal totals.seen, segment.sites.sum { |site| site.program? ? site.count : 0 }
    assert_equal 0, totals.untracked
    segment.sites.each do |site|
      assert_operator site.freed + site.retained, :<=, site.count, site.inspect
      assert_operator site.retained_bytes, :<=, site.bytes, site.inspect
      assert_equal site.count, site.freed + site.retained, site.inspect if site.program?
      assert_operator site.old, :<=, site.count, site.inspect
      assert_operator site.min_age, :<=, site.max_age, site.inspect
      assert_operator site.total_age, :>=, site.min_age * (site.freed + site.retained)
      assert_operator site.total_age, :<=, site.max_age * (site.freed + site.retained)
      assert_operator site.bytes, :>=, site.slot_bytes
      assert_operator site.slot_bytes, :>=, 40 * (site.freed + site.retained)
    end
    assert_work(segment)
    measured = segment.stats.fetch("gc_ns").values.sum
    assert_in_delta measured, segment.sites.sum(&:gc_ns), measured * 0.01, "charged GC"
  end

  # Of what collections had to do.
  def assert_work(segment)
    assert_operator segment.sites.sum(&:started_ns), :<=, segment.stats.fetch("gc_ns").fetch("marking")
    runs = segment.collections.sum(&:runs) + segment.stat("gc_untold") # in which our listening began again counts among those
    segment.sites.each do |site|
      assert_operator site.minor_marks + site.major_marks, :<=, site.lived, site.inspect
      # One that has no class until the program is shown it counts elsewhere then; what it lived through before stays here.
      assert_operator site.lived, :<=, site.count * runs, site.inspect unless site.class_name.empty?
      assert_operator site.mallocs, :<=, site.freed, site.inspect
    end
  end
end
