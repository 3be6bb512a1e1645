# frozen_string_literal: true

require_relative "../test_helper"
require "etc"
require "pitwall/fastboot/folder"
require "pitwall/fastboot/last_boot"
require_relative "../support/command_line"

# New memory is touched by another thread before the program needs it.
class PrefaultTest < Minitest::Test
  include CommandLine

  LIB = File.join(Checkout::ROOT, "lib")

  def setup
    super
    skip "one processor" if Etc.nprocessors < 2
    write_files("a.rb" => "A = 1 unless defined?(A)")
  end

  # @return the lines that the program prints
  def lines(program, *options, env: {})
    result = capture({ "PITWALL_BOOT_CACHE" => file("cache"), **env }, *options, RUBY, "-I#{LIB}", "-e",
                     "require 'pitwall/fastboot'; #{STATS}; #{program}")
    assert_predicate result.status, :success?, result.err
    assert_empty result.err
    result.out.lines(chomp: true)
  end

  # Strings of 10 kB have their bytes in malloc's heap.
  STATS = "KEPT = []; touched = -> { Pitwall::Fastboot.stats['prefaulted'].to_i }; " \
          "reason = -> { Pitwall::Fastboot.stats['reasons'].grep(/touched/) }; " \
          "grow = ->(n) { n.times { KEPT << ('x' * 10_000); load './a.rb' } }; " \
          "threads = -> { Dir.children('/proc/self/task').size }"
  # At first the thread may not get a processor.
  UNTIL_TOUCHED = "200.times { grow.call(200); break if touched.call.positive? }"

  # Page faults of all threads but the main one.
  FAULTS = "faults = -> { Dir['/proc/self/task/*/stat'].sum { |path| " \
           "path.include?(\"/\#{$$}/\") ? 0 : File.read(path)[/\\) \\S(?: \\S+){6} (\\d+)/, 1].to_i } }"

  # Bytes of the process in memory.
  RESIDENT = "resident = -> { File.read('/proc/self/smaps_rollup')[/^Rss: +(\\d+)/, 1].to_i * 1024 }"

  def test_a_program_that_needs_much_memory
    program = "#{FAULTS}; #{UNTIL_TOUCHED}; p touched.call.positive?, faults.call >= 100"
    assert_equal %w[true true true], lines("#{program}; p KEPT.all? { |x| x == 'x' * 10_000 }")
  end

  def test_small_programs_need_none
    assert_equal %w[0], lines("grow.call(200); p touched.call")
  end

  def test_where_it_does_not_begin
    nothing = "grow.call(3000); p touched.call, reason.call"
    assert_equal %w[0 []], lines(nothing, env: { "PITWALL_FASTBOOT_PREFAULT" => "off" })
    assert_equal ["0", '["memory is not touched early: memory is limited (ulimit)"]'],
                 lines(nothing, "sh", "-c", 'ulimit -v 8000000; exec "$@"', "sh")
    assert_equal ["0", '["memory is not touched early: there is one processor"]'],
                 lines(nothing, "taskset", "--cpu-list", allowed_processor)
    # Then malloc's heap never has a large block.
    assert_equal %w[0 []], lines(nothing, env: { "MALLOC_MMAP_THRESHOLD_" => "65536" })
  end

  def allowed_processor = File.read("/proc/self/status")[/^Cpus_allowed_list:\s*(\d+)/, 1]

  def test_it_ends_where_the_program_limits_its_memory
    program = "#{UNTIL_TOUCHED}; p touched.call.positive?; Process.setrlimit(:AS, 16 << 30); sleep 0.1; " \
              "before = touched.call; grow.call(3000); p touched.call - before <= 3"
    assert_equal %w[true true], lines(program)
  end

  # The block's pages are given back, and the thread ends. The next file may begin it again.
  def test_a_program_that_loads_no_file_for_a_while
    program = "before = threads.call; #{RESIDENT}; #{UNTIL_TOUCHED}; held = resident.call; " \
              "600.times { threads.call == before ? break : sleep(0.1) }; " \
              "p threads.call == before, held - resident.call >= 200_000; now = touched.call; " \
              "200.times { grow.call(200); break if touched.call > now }; p touched.call > now"
    assert_equal %w[true true true], lines(program, env: { "PITWALL_FASTBOOT_GC" => "off" })
  end

  # Other threads usually allocate from other arenas of malloc. Here there is one arena.
  def test_other_threads
    assert_equal %w[0], lines("Thread.new { grow.call(3000) }.join; p touched.call", env: { "MALLOC_ARENA_MAX" => "1" })
  end

  def test_children
    program = "#{UNTIL_TOUCHED}; " \
              "20.times { grow.call(50); fork { now = touched.call; grow.call(500); p touched.call == now } }; " \
              "Process.waitall.each { |_, status| p status.success? }; Process.daemon(true, true); grow.call(500)"
    assert_equal ["true"] * 40, lines(program)
  end

  # The heap is used by all: other threads fill and check strings meanwhile.
  def test_memory_has_what_the_program_has_written
    program = <<~RUBY
      fillers = Array.new(4) do |i|
        Thread.new do
          200.times.map { |j| [n = 1000 * (j % 97 + 1) + i, (i + 65).chr * n] }.all? { |n, s| s == (i + 65).chr * n }
        end
      end
      6000.times { |i| KEPT << [i, i.to_s * (10_000 / i.to_s.size)]; load "./a.rb" }
      p fillers.map(&:value), KEPT.all? { |i, s| s == i.to_s * (10_000 / i.to_s.size) }
      p Array.new(50) { "\\0" * 1_000_000 }.all? { |s| s.count("\\0") == 1_000_000 }
    RUBY
    assert_equal ["[true, true, true, true]", "true", "true"], lines(program)
  end

  # A boot touches no more than the last one needed.
  def test_what_the_last_boot_took
    lines("grow.call(6000)")
    growth = noted
    assert_includes 40..100, growth, "60 MB of strings, and no block that was not freed"
    File.write(file("cache/last-boot"), "command=-e\nheap_growth=20\n")
    assert_equal %w[true], lines("grow.call(6000); p touched.call <= 20")
    assert_in_delta growth, noted, 8, "this boot's own growth is noted"
    lines("1", env: { "PITWALL_FASTBOOT_PREFAULT" => "off" })
    assert_in_delta growth, noted, 8, "kept where it is switched off"
  end

  def noted = Pitwall::Fastboot::LastBoot.read(file("cache"))["heap_growth"]

  def test_the_option
    result = capture({ "PITWALL_BOOT_CACHE" => file("cache") }, RUBY, "-I#{LIB}", "-e",
                     "require 'pitwall/fastboot/setup'; Pitwall::Fastboot.setup(prefault: false); #{STATS}; " \
                     "grow.call(3000); p touched.call")
    assert_equal ["0\n", ""], [result.out, result.err]
  end
end
