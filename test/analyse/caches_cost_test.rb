# frozen_string_literal: true

require_relative "../test_helper"
require "tempfile"
require_relative "../support/recording_builder"
require "pitwall/analyse"
require "pitwall/record"

# What changes that empty caches cost: misses that follow, and samples at the line.
class CachesCostTest < Minitest::Test
  MAIN = ["main", "a.rb", 1, 1].freeze
  DEFINES = [MAIN, ["Shop#defines", "a.rb", 5, 6]].freeze
  SETS = [MAIN, ["Shop#sets", "a.rb", 9, 10]].freeze

  def caches(misses: true, samples: false)
    bytes = RecordingBuilder.build do |s|
      s.thread(1, "main")
      3.times { |n| s.change("method_added", "Shop#a", stack: DEFINES, at: n, misses: (0 if misses)) }
      s.change("constant_set", "Shop::A", stack: SETS, at: 10, constants: 2, misses: (40 if misses))
      s.change("constant_set", "Shop::B", stack: SETS, at: 20, constants: 1, misses: (45 if misses))
      if samples
        deeper = [*DEFINES, ["Shop#other", "a.rb", 20, 21]]
        [DEFINES, deeper, [*deeper, *DEFINES.drop(1)]].each { |stack| s.row(stack: stack, wall: 100, captures: 4) }
        s.row(stack: SETS, wall: 1000, captures: 30, state: 2)
      end
      counters = { "global_cvar_state" => [0, 0, 0], "constant_cache_invalidations" => [5, 8, 0] }
      s.cache_sums(misses ? { **counters, "constant_cache_misses" => [1000, 1055, 0] } : counters)
      s.flush
    end
    Tempfile.create(["caches", ".pit"], binmode: true) do |io|
      io.write(bytes)
      io.flush
      Pitwall::Analyse::Caches.new(Pitwall::Record.read(io.path).segments)
    end
  end

  def rows(caches)
    caches.changes.map { |row, counts| [row.subject, caches.figures(row, counts)] }
  end

  def test_misses_follow_the_change_that_emptied
    found = caches
    assert_equal([["Shop::B", 10], ["Shop::A", 5], ["Shop#a", 0]], rows(found).map { |name, cost| [name, cost.misses] })
    assert_equal [nil, nil, nil], rows(found).map { |_, cost| cost.time_ns }
    assert_equal 55, found.counters.fetch("constant_cache_misses")
    assert_equal({}, found.unblamed)
  end

  def test_without_misses_what_was_emptied_counts
    found = caches(misses: false)
    assert_equal(%w[Shop::A Shop::B Shop#a], rows(found).map(&:first))
    assert_equal [nil, nil, nil], rows(found).map { |_, cost| cost.misses }
  end

  # Waiting is no cost of the line, and a stack that passes it twice counts once.
  def test_samples_come_first
    name, cost = rows(caches(samples: true)).first
    assert_equal ["Shop#a", 300_000, 12], [name, cost.time_ns, cost.samples]
    assert_in_delta 0.566, cost.doubt, 0.001
    assert_nil rows(caches(samples: true)).last.last.doubt
  end
end
