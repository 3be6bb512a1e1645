# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/native_program"

# Libraries that come and go, threads of C code, forks and a moving heap, while native stacks are read.
class NativeHazardsTest < Minitest::Test
  include NativeProgram

  def settings = { native: true, interval_ns: 200_000, flush_ns: 50_000_000 }

  def run_known(source) = run_program("require #{@known.inspect}\n#{source}")

  def library(name, **options) = NativeExtension.library(file(name), **options)

  # A library that is loaded again and again is one object. What is sampled before the drain knows the library is
  # compiled code.
  def test_a_library_that_is_loaded_and_unloaded_over_and_over
    path = library("libagain.so", ms: 1)
    out = run_known(<<~RUBY)
      record do
        loader = Thread.new { Known.load(#{path.inspect}, 400) }
        Known.leaf while loader.alive?
        puts loader.value
      end
    RUBY
    assert_equal "400", out.strip
    assert_sane(segment)
    objects = segment.shared_objects.select { |object| object.path == path }
    assert_operator objects.size, :<=, 3
    leaves = stacks(segment).keys.select { |stack| stack.any? { |frame| frame.name == "c_leaf" } }
    refute_empty leaves
  end

  # The functions of the first library must not get the names of the second one, which may lie at the same address.
  def test_a_library_that_is_replaced_on_disk
    path = library("libreplaced.so", ms: 300)
    other = library("libother.so", ms: 300, more: "int other(int n) { return n * 3; } int more[100] = {1};")
    run_known(<<~RUBY)
      record do
        Known.load(#{path.inspect}, 1)
        burn(0.2)
        File.rename(#{other.inspect}, #{path.inspect})
        Known.load(#{path.inspect}, 1)
        burn(0.2)
      end
    RUBY
    assert_sane(segment)
    names = stacks_of_weight(segment).keys.flat_map { |stack| stack.select { |frame| frame.path == path }.map(&:name) }.uniq
    names.each { |name| assert_match(/\A(burn_in_loaded|libreplaced\.so\+0x\h+)\z/, name) }
  end

  # The loader's lock is free in each child, and the child records.
  def test_forks_while_libraries_are_loaded
    path = library("libforked.so", ms: 0)
    out = run_known(<<~RUBY)
      record do
        60.times do
          Known.load(#{path.inspect}, 1) # the drain will look at the loader's list
          child = fork { exit!(Known.load(#{path.inspect}, 3) == 3 ? 0 : 1) }
          Process.wait(child)
          abort "child: \#{$?}" unless $?.success?
        end
      end
      puts :end
    RUBY
    assert_equal "end", out.strip
    assert_sane(segment)
  end

  def test_a_child_of_fork_records_native_frames
    run_known("record { Process.wait(fork { 30.times { Known.leaf } }); burn(0.05) }")
    child = Dir.children(@dir).grep(/\Aa-\d+\.pit\z/).fetch(0)
    found = stacks(read(child).segments.first)
    assert_includes found.keys.map { |path| shown(path).last(3) }, ["Known.leaf", "c_leaf", "burn_in_leaf"]
  end

  def test_an_exec_ends_the_recording
    run_known("start; 20.times { Known.leaf }; exec('true')")
    assert_includes stacks(segment).keys.map { |path| path.last.name }, "burn_in_leaf"
  end

  # Threads that Ruby does not know are not sampled, and harm nothing.
  def test_threads_of_c_code
    run_known("record { other = Thread.new { 40.times { Known.leaf } }; 20.times { Known.threads(8) }; other.join }")
    assert_sane(segment)
    assert_equal 0, segment.stat("native_lost")
  end

  # Frames of the sanitizer's own functions have no rules.
  ASAN = ENV.key?("PITWALL_ASAN")

  def test_many_threads_and_fibers
    run_known(<<~RUBY)
      record do
        Array.new(20) do
          Thread.new do
            5.times { 10.times.map { Fiber.new { Known.outer { Known.leaf }; Fiber.yield } }.each(&:resume).each(&:resume) if cpu < 0.3 }
          end
        end.each(&:join)
      end
    RUBY
    assert_sane(segment)
    stacks(segment).each_key do |path|
      names = shown(path)
      at = names.index("c_leaf") or next
      assert_equal ["Known.outer", "c_outer", "c_inner"], names[names.index("Known.outer"), 3]
      assert_equal "Known.leaf", names[at - 1]
    end
    # Beside busy processes one stack did not reach its thread's start, in 3 of 30 runs. The cause is not known.
    assert_operator segment.stat("native_lost"), :<=, ASAN ? segment.stat("native_stacks") / 100 : 1
  end

  # Each allocation is a collection of the whole heap, which takes long on some Rubies: one round, and others within 2 s.
  def test_a_collector_under_stress_that_moves_objects
    run_known(<<~RUBY)
      GC.auto_compact = true if GC.respond_to?(:auto_compact=)
      record do
        limit = cpu + 2
        GC.stress = true
        20.times { Known.outer { Array.new(20) { |i| i.to_s }.map(&:to_sym) }; break if cpu > limit }
        GC.stress = false
        3.times { GC.compact if GC.respond_to?(:compact); burn(0.02) }
      end
    RUBY
    assert_sane(segment)
    assert_operator segment.stat("native_stacks"), :>, 0
  end

  # Many recordings in one process: tables are freed and made again.
  def test_memory_of_recordings_one_after_the_other
    out = run_known(<<~RUBY)
      def resident = File.read("/proc/self/status")[/^VmRSS:\\s+(\\d+)/, 1].to_i
      sizes = Array.new(30) { record("b.pit") { Known.leaf }; resident }
      puts sizes.last - sizes[9]
      record { 20.times { Known.leaf } }
    RUBY
    assert_operator out.to_i, :<, 8_000
    assert_includes stacks(segment).keys.map { |path| path.last.name }, "burn_in_leaf"
  end
end
