# frozen_string_literal: true

require_relative "test_helper"
require_relative "support/command_line"
require "pitwall/budget"

# Limits of allocation: what is counted, and how a test fails that allocates too much, in the real frameworks.
class BudgetTest < Minitest::Test
  include CommandLine

  Budget = Pitwall::Budget

  def test_objects_are_counted_exactly
    assert_equal 0, Budget.objects { 1 + 1 }.count
    assert_equal 1, Budget.objects { Object.new }.count
    assert_equal 101, Budget.objects { Array.new(100) { Object.new } }.count
    assert_equal [7, 7, 7, 7], Budget.objects(runs: 4) { 7.times { Object.new } }.runs
  end

  def test_what_is_cached_counts_only_without_a_warm_up
    cache = nil
    fill = -> { cache ||= Array.new(50) { +"" } }
    assert_equal 0, Budget.objects(&fill).count
    cache = nil
    assert_operator Budget.objects(warmup: 0, runs: 1, &fill).count, :>=, 51
  end

  def test_the_least_run_counts
    sizes = [30, 5, 20].cycle
    count = Budget.objects(warmup: 0, runs: 3) { sizes.next.times { Object.new } }.count
    assert_equal 5, count - count % 5
  end

  def test_bytes_are_slots_and_what_they_hold
    require "objspace"
    one = ObjectSpace.memsize_of("x" * 10_000)
    assert_equal one * 3, Budget.bytes { 3.times { "x" * 10_000 } }.count
    assert_equal 0, Budget.bytes { 1 + 1 }.count
  end

  def test_sites
    line = __LINE__ + 1
    sites = Budget.sites { 3.times { Object.new }; [] }
    assert_equal [["Object", 3], ["Array", 1]], sites.map { |site| [site.class_name, site.count] }
    assert_equal [[__FILE__, line]], sites.map { |site| [site.path, site.line] }.uniq
    anonymous = Class.new(BasicObject)
    names = Budget.sites { BasicObject.new; anonymous.new }.map(&:class_name)
    assert_equal ["(anonymous class)", "BasicObject"], names.sort
  end

  # `once` relies on this.
  def test_tracing_allocates_nothing_that_ruby_counts
    # No "a#{i}": the JIT saves the number's own string, and code that is traced is not compiled.
    work = -> { 10.times { "a".dup }; [1].map(&:succ) }
    plain = Budget.objects(&work).count
    assert_equal plain, Budget.objects(warmup: 0, runs: 1, &work).count
  end

  def test_a_block_that_may_run_only_once_runs_once
    runs = 0
    measured = Budget.objects(warmup: 0, runs: 1) { runs += 1; Object.new }
    message = Budget.exceeded(0, measured) { runs += 1 }
    assert_equal 1, runs
    assert_match(/at most 0 objects to be allocated, but it was \d+\.$/, message)
    assert_match(/\.\n(  \d+  \(VM internal\)\n)?  1  Object  .*budget_test\.rb:\d+$/, message)
  end

  def test_whatever_the_block_does_the_collector_is_as_before
    [true, false].each do |off|
      GC.disable if off
      assert_raises(RuntimeError) { Budget.objects { raise "x" } }
      assert_raises(RuntimeError) { Budget.bytes { raise "x" } }
      catch(:done) { Budget.sites { throw :done } }
      assert_equal off, GC.disable
      GC.enable
    end
    assert_nil ObjectSpace.allocation_generation(Object.new)
  end

  def test_under_stress
    GC.stress = true
    assert_equal 3, Budget.objects { 3.times { Object.new } }.count
  ensure
    GC.stress = false
  end

  def test_mistakes
    { "max: -1: must be an Integer, 0 or more" => -> { Budget.limit("max:", -1) },
      "runs 0: must be" => -> { Budget.objects(runs: 0) { 1 } },
      "warmup nil: must be" => -> { Budget.bytes(warmup: nil) { 1 } } }.each do |message, work|
      assert_includes assert_raises(Pitwall::UsageError, &work).message, message
    end
  end

  def test_minitest
    File.write(file("a_test.rb"), <<~'RUBY')
      require "minitest/autorun"
      require "pitwall/minitest"
      class ATest < Minitest::Test
        def test_within = assert_equal(20, assert_allocations(max: 20) { 20.times { Object.new } })
        def test_bytes_within = assert_operator(assert_allocated_bytes(max: 100_000) { "x" * 50_000 }, :>, 50_000)
        def test_over
          assert_allocations(max: 1200) do
            2_000.times { Object.new }
            "a" + "b"
          end
        end
        def test_bytes_over = assert_allocated_bytes(max: 1_000) { "x" * 50_000 }
        def test_no_block = assert_allocations(max: 3)
        def test_no_limit = assert_allocations(max: "12") { 1 }
      end
    RUBY
    result = run_with_gems("a_test.rb")
    refute result.status.success?
    assert_match(/6 runs, \d+ assertions, 2 failures, 2 errors/, result.out)
    least = /\(the least of 3 runs\)\.\n/
    rows = /  2,000  Object  a_test\.rb:8\n      3  String  a_test\.rb:9$/
    assert_match(/^Expected at most 1,200 objects to be allocated, but it was 2,003 #{least}#{rows}/, result.out)
    row = /  50,\d{3}  String  a_test\.rb:12$/
    assert_match(/^Expected at most 1,000 bytes to be allocated, but it was 50,\d{3} #{least}#{row}/, result.out)
    assert_match(/UsageError: a budget is of a block: assert_allocations\(max: 3\)/, result.out)
    assert_match(/UsageError: max: "12": must be an Integer/, result.out)
  end

  def test_rspec
    File.write(file("a_spec.rb"), <<~'RUBY')
      require "pitwall/rspec"
      RSpec.describe "budgets" do
        it("is within") { expect { 20.times { Object.new } }.to allocate_at_most(20).objects }
        it("is within, by default of objects") { expect { Object.new }.to allocate_at_most(1) }
        it("is within bytes") { expect { "x" * 50_000 }.to allocate_at_most(100_000).bytes }
        it { expect { Object.new }.to allocate_at_most(1).objects }
        it("is over") { expect { 2_000.times { Object.new } }.to allocate_at_most(1200).objects }
        it("is over once") do
          done = 0
          expect { 9.times { Object.new }; abort if (done += 1) > 1 }.to allocate_at_most(8).objects.once
        end
        it("can't be turned around") { expect { 1 }.not_to allocate_at_most(1).objects }
        it("is of a block") { expect(1).to allocate_at_most(1).objects }
      end
    RUBY
    result = run_with_gems("-S", "rspec", "--format", "documentation", "a_spec.rb")
    assert_match(/8 examples, 4 failures/, result.out, result.err)
    assert_match(/is expected to allocate at most 1 objects/, result.out)
    least = /\(the least of 3 runs\)\.\n/
    row = / +2,000  Object  a_spec\.rb:7$/
    assert_match(/Expected at most 1,200 objects to be allocated, but it was 2,000 #{least}#{row}/, result.out)
    assert_match(/at most 8 objects to be allocated, but it was \d+\.\n +9  Object +a_spec\.rb:10\n/, result.out)
    assert_match(/a budget has no lower end/, result.out)
    assert_match(/a budget is of a block: expect \{/, result.out)
  end

  def run_with_gems(*command)
    home = File.join(Checkout::GEMS, RUBY_ENGINE, RbConfig::CONFIG["ruby_version"])
    environment = { "GEM_HOME" => home, "GEM_PATH" => home, "MT_NO_PLUGINS" => "1" }
    capture(environment, RUBY, "-I#{Checkout::ROOT}/lib", *rspec_path(home, command))
  end

  def rspec_path(home, command)
    command.first == "-S" ? [Dir[File.join(home, "bin/rspec")].fetch(0), *command.drop(2)] : command
  end
end
