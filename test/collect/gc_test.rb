# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/collecting_program"

# Garbage collection stands under the code that ran, marking and sweeping apart.
module GCContract
  include CollectingProgram

  # Ruby forgets that we listen when a Ractor is freed (3.1: nobody listens from the first one on).
  def test_collections_after_ractors
    counts = run_program(<<~RUBY, options: ["-W0"]).split.map(&:to_i)
      GC.disable # start and stop allocate, too
      start
      before = GC.count
      GC.enable
      4.times { ractor = Ractor.new { 100.times { [1].map(&:to_s) } }; ractor.respond_to?(:value) ? ractor.value : ractor.take }
      burn(0.01)
      among = GC.count
      100.times { GC.start; burn(0.003) }
      GC.disable
      after = GC.count
      stop
      puts after - before, after - among
    RUBY
    told, untold = segment.stat("gc_count"), segment.stat("gc_untold")
    return if RUBY_VERSION < "3.2"

    assert_equal counts.first, told + untold
    assert_operator untold, :<, counts.last / 2
    assert_sane(segment)
  end if defined?(Ractor)

  def test_marking_and_sweeping_under_the_code_that_ran
    collections = run_program(ALLOCATING).to_i
    assert_sane(segment)
    tree = tree(segment)
    names = tree.methods.select(&:gc?).map(&:name).sort
    assert_equal ["(marking)", "(sweeping)"], names

    # Leaves, and below something.
    gc_nodes(tree).each { |node| refute_equal 0, tree.parents[node] }
    assert_empty gc_nodes(tree) & tree.parents
    assert_operator heaviest_caller_weight(tree, "Object#allocating"), :>, 0
    assert_equal 0, heaviest_caller_weight(tree, "Object#computing")

    assert_operator segment.stat("gc_count"), :<=, collections
    assert_operator segment.stat("gc_count"), :>=, 4
  end

  # GC weight anywhere below a method.
  def heaviest_caller_weight(tree, name)
    gc_nodes(tree).sum do |node|
      at = node
      at = tree.parents[at] until at.zero? || tree.methods[tree.node_methods[at]].name == name
      at.zero? ? 0 : tree.selfs(:wall)[node]
    end
  end

  def test_a_program_without_collections_has_none
    run_program("GC.start\nGC.disable\nrecord { burn(0.1) }")
    assert_empty gc_nodes(tree(segment))
    assert_equal 0, segment.stat("gc_count")
    assert_equal({ "marking" => 0, "sweeping" => 0 }, segment.stats["gc_ns"])
  end

  # Time in other threads while one collects is theirs, wherever it goes: nothing is lost.
  def test_collections_while_other_threads_compute
    run_program(<<~'RUBY')
      keep = Array.new(100_000) { |i| [i.to_s] }
      record do
        threads = Array.new(3) { |n| Thread.new { Thread.current.name = "t#{n}"; limit = cpu + 0.1; Array.new(100) { +"x" } while cpu < limit } }
        10.times { GC.start }
        threads.each(&:join)
      end
      abort unless keep.size == 100_000
    RUBY
    assert_sane(segment)
    rows = threads_of(segment).to_h { |row| [row.name, row] }
    3.times { |n| assert_operator rows.fetch("t#{n}").cpu, :>=, 95_000_000 }
  end
end

class SignalGCTest < Minitest::Test
  include GCContract

  def settings = { mode: "signal" }
end

class OutsideGCTest < Minitest::Test
  include GCContract

  def settings = { mode: "outside" }
end

class SafepointGCTest < Minitest::Test
  include GCContract

  def settings = { mode: "safepoint" }
end
