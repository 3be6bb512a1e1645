# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require "pitwall/analyse"
require "pitwall/record"

# Tests of the real frameworks, recorded: each has its name as a label, and ends as it does alone.
class TestsTest < Minitest::Test
  include CommandLine

  HOME = File.join(Checkout::GEMS, RUBY_ENGINE, RbConfig::CONFIG["ruby_version"])
  GEMS = { "GEM_HOME" => HOME, "GEM_PATH" => HOME, "MT_NO_PLUGINS" => "1" }.freeze
  BURN = "def burn(seconds) = (limit = Process.clock_gettime(3) + seconds; nil while Process.clock_gettime(3) < limit)"

  def options = ["-I#{ENV["TEST_LIB"] || File.join(Checkout::ROOT, "lib")}"]

  def write(name, source) = File.write(file(name), "#{BURN}\n#{source}")

  # RSpec says "1 second" and "1 minute 2.5 seconds".
  TIMES = /(?:\d+(?:\.\d+)? (?:minutes?|seconds?) ?)+|\d+\.\d+/

  # Runs it alone and recorded. @return what both said and how they ended, without times and addresses
  def both(*command, env: GEMS)
    alone = capture(env, RUBY, *options, *command)
    profile = %w[profile --mode signal --quiet --record a.pit --]
    recorded = pitwall(*profile, RUBY, *options, *command, env: env)
    [alone, recorded].map { |result| [result.out.gsub(TIMES, "0").gsub(/0x\h+/, "0x0"), result.status.exitstatus] }
  end

  def rows = Pitwall::Analyse::Tests.new(segments(file("a.pit"))).rows.to_h { |row| [row.name, row] }

  MINITEST = <<~'RUBY'
    require "minitest/autorun"
    class CartTest < Minitest::Test
      def setup = burn(0.02)
      def test_burns = burn(0.1)
      def test_sleeps = sleep(0.1)
      def test_makes = assert_equal(50_000, Array.new(50_000) { Object.new }.size)
      def test_collects = 3.times { GC.start }
      def test_fails = assert(false)
      def test_raises = raise("its own")
      def test_skips = skip
      def test_throws = catch(:out) { throw :out }
    end
    Class.new(Minitest::Test) { def test_nothing = nil }
    describe("cart") { it("has a name") { _(1).must_equal 1 } }
  RUBY

  # Without a word in the program.
  def test_minitest
    write("a_test.rb", MINITEST)
    alone, recorded = both("a_test.rb", "--seed", "7", "--verbose")
    assert_equal alone, recorded
    assert_equal 1, recorded.last
    assert_match(/10 runs.*1 failures, 1 errors, 1 skips/, recorded.first)
    assert_equal 10, rows.size
    %w[burns sleeps makes collects fails raises skips throws].each do |name|
      assert_equal 1, rows.fetch("CartTest#test_#{name}").runs
    end
    assert_includes rows.keys, "(anonymous)#test_nothing"
    assert(rows.keys.any? { |name| name.match?(/\Acart#test_0001_has a name\z/) })
    burns, sleeps, makes, collects = %w[burns sleeps makes collects].map { |name| rows.fetch("CartTest#test_#{name}") }
    assert_operator burns.cpu_ns, :>=, 120_000_000, "with its setup"
    assert_operator burns.duration_ns, :>=, burns.cpu_ns
    assert_operator sleeps.duration_ns, :>=, 120_000_000
    assert_operator sleeps.cpu_ns, :<, sleeps.duration_ns
    assert_includes 50_001..52_000, makes.objects
    assert_operator collects.gc_ns, :>, 0
    request = Pitwall::Analyse::Requests.new(segments(file("a.pit"))).row(burns.request)
    assert_equal "CartTest#test_burns", request.labels["test"]
  end

  # A program that requires the file itself has each test once, too; and where nothing is recorded nothing is done.
  def test_minitest_with_the_file
    write("a_test.rb", "require \"pitwall/minitest\"\n#{MINITEST}")
    alone, recorded = both("a_test.rb", "--seed", "7")
    assert_equal alone, recorded
    assert_equal [1], rows.values.map(&:runs).uniq
  end

  # A process that records itself labels its tests by the file.
  def test_minitest_in_a_program_that_records_itself
    write("a_test.rb", "require 'pitwall/minitest'\nPitwall.start(record: 'a.pit', mode: 'signal')\n#{MINITEST}")
    result = capture(GEMS, RUBY, *options, "a_test.rb")
    assert_match(/10 runs/, result.out, result.err)
    assert_equal 10, rows.size
  end

  # Tests in several threads have times of their own. What is counted by process is left out where two ran at once.
  def test_parallel_tests
    write("a_test.rb", <<~'RUBY')
      require "minitest/autorun"
      MEETING = [Queue.new, Queue.new]
      class SideTest < Minitest::Test
        parallelize_me!
        2.times do |at|
          define_method("test_#{at}") do
            MEETING[at] << 1
            MEETING[1 - at].pop
            burn(0.05 + at * 0.1)
          end
        end
      end
      class AloneTest < Minitest::Test
        def test_alone = Array.new(1000) { Object.new }
      end
    RUBY
    alone, recorded = both("a_test.rb", "--seed", "7", env: GEMS.merge("N" => "2", "MT_CPU" => "2"))
    assert_equal alone, recorded
    assert_equal %w[AloneTest#test_alone SideTest#test_0 SideTest#test_1], rows.keys.sort
    assert_includes 50_000_000..149_000_000, rows["SideTest#test_0"].cpu_ns
    assert_operator rows["SideTest#test_1"].cpu_ns, :>=, 150_000_000
    beside = rows.values_at("SideTest#test_0", "SideTest#test_1")
    assert_equal [nil] * 4, beside.flat_map { |row| [row.objects, row.gc_ns] }
    assert_operator rows["AloneTest#test_alone"].objects, :>=, 1000
  end

  # Forked workers, as Rails' parallelize starts them.
  def test_forked_workers
    write("a_test.rb", <<~'RUBY')
      require "minitest"
      class WorkerTest < Minitest::Test
        4.times { |at| define_method("test_#{at}") { burn(0.02) } }
      end
      pids = [0, 2].map { |at| fork { 2.times { |more| WorkerTest.new("test_#{at + more}").run } } }
      pids.each { |pid| Process.wait(pid) }
    RUBY
    both("a_test.rb")
    assert_equal 4, rows.size
    assert_equal [1], rows.values.map(&:runs).uniq
  end

  def test_rspec
    write("a_spec.rb", <<~'RUBY')
      RSpec.describe "cart" do
        before { burn(0.05) }
        around { |example| example.run }
        it("burns") { burn(0.05) }
        it("fails") { expect(1).to eq 2 }
        it("is pending") { pending; raise "x" }
        it { expect(1).to eq 1 }
        it("makes") { Array.new(10_000) { Object.new } }
      end
    RUBY
    rspec = Dir[File.join(HOME, "bin/rspec")].fetch(0)
    alone, recorded = both(rspec, "--format", "documentation", "--seed", "3", "a_spec.rb")
    assert_equal alone, recorded
    assert_match(/5 examples, 1 failure, 1 pending/, recorded.first)
    assert_equal ["cart (./a_spec.rb:8)", "cart burns", "cart fails", "cart is pending", "cart makes"], rows.keys.sort
    assert_operator rows["cart burns"].cpu_ns, :>=, 100_000_000
    assert_operator rows["cart makes"].objects, :>=, 10_000
  end

  def test_test_unit
    write("a_test.rb", <<~'RUBY')
      require "test/unit"
      class UnitTest < Test::Unit::TestCase
        def setup = burn(0.02)
        def test_burns = burn(0.05)
        def test_fails = assert(false)
        data("small" => 1, "large" => 2)
        def test_data(number) = assert_operator(number, :<, 3)
      end
    RUBY
    folders = gem_options("test-unit", "power_assert")
    refute_empty folders, "test-unit comes with Ruby"
    [[], ["-rpitwall/test_unit"]].each do |more|
      alone, recorded = both(*folders, *more, "a_test.rb", "--order=alphabetic", env: {})
      assert_equal alone, recorded
      assert_match(/4 tests, \d assertions, 1 failures/, recorded.first)
      names = %w[test_burns test_data[large] test_data[small] test_fails]
      assert_equal(names.map { |name| "UnitTest##{name}" }, rows.keys.sort)
      assert_equal [1], rows.values.map(&:runs).uniq
      assert_operator rows["UnitTest#test_burns"].cpu_ns, :>=, 70_000_000
    end
  end

  # What labelling can stumble over changes nothing.
  def test_tests_that_stand_in_the_way
    write("a_test.rb", <<~'RUBY')
      require "minitest/autorun"
      class StopTest < Minitest::Test
        i_suck_and_my_tests_are_order_dependent!
        def test_a = (GC.measure_total_time = false)
        def test_b = (Fiber.new { sleep 0 }.resume; def Process.clock_gettime(*) = 0)
        def test_c = Thread.new { AsideTest.new("test_aside").run }.value
        def test_d = Thread.current.freeze
        def test_e = assert(true)
        def test_f = exit!(5)
      end
      AsideTest = Class.new(Minitest::Test) { def test_aside = print("aside") }
      Minitest::Runnable.runnables.delete(AsideTest)
    RUBY
    alone, recorded = both("a_test.rb", "--seed", "7")
    assert_equal alone, recorded
    assert_equal 5, recorded.last
    assert_equal %w[AsideTest#test_aside StopTest#test_a StopTest#test_b StopTest#test_c], rows.keys.sort.first(4)
    beside = rows.values_at("AsideTest#test_aside", "StopTest#test_c")
    assert_equal [nil, nil], beside.map(&:objects)
  end

  def test_constants_of_other_programs
    program = "module Test; end; RSpec = 1; autoload :Minitest, './nowhere'; eval('1'); print autoload?(:Minitest)"
    result = pitwall("profile", "--quiet", "--record", "a.pit", "--", RUBY, *options, "-e", program)
    assert_equal ["./nowhere", 0], [result.out, result.status.exitstatus], result.err
  end

  # A recording has room for the tests of a large suite.
  def test_many_tests
    write("a_test.rb", <<~'RUBY')
      require "minitest"
      class ManyTest < Minitest::Test
        5000.times { |at| define_method("test_#{at}") { } }
      end
      5000.times { |at| ManyTest.new("test_#{at}").run }
    RUBY
    both("a_test.rb")
    assert_equal 5000, rows.size
  end
end
