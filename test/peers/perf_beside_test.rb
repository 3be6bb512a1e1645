# frozen_string_literal: true

require "json"
require_relative "../test_helper"
require_relative "../support/command_line"
require_relative "../support/own_walk"
require_relative "../support/real_perf"
require "pitwall/analyse"

# `profile --perf` with the real perf: native and kernel frames below the Ruby method that caused them.
class PerfBesidePeerTest < Minitest::Test
  include CommandLine
  extend RealPerf

  PROGRAM = <<~RUBY
    require "zlib"
    # Reads for 0.25 s of CPU time. A number of reads would take a fast machine too little time for many samples.
    def cpu_s = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
    def reading(until_s = cpu_s + 0.25) = File.open("/dev/zero") { |zero| zero.read(1 << 20) while cpu_s < until_s }
    def deflating(text) = 4.times { Zlib.deflate(text) }
    text = Array.new(40_000) { |i| "line \#{i}" }.join("\\n")
    other = Thread.new { deflating(text) }
    child = fork { reading }
    reading
    other.join
    Process.wait(child)
    IO.popen(%w[gzip -c], "w", out: IO::NULL) { |gzip| 20.times { gzip.write(text) } } # long enough to be sampled
    exit 7
  RUBY

  def record(*options)
    File.write(file("app.rb"), PROGRAM)
    @result = pitwall("profile", "--perf", "--record", "x.pit", *options, "--", RUBY, "app.rb")
    assert_equal 7, @result.status.exitstatus, @result.err
    segments(file("x.pit"))
  end

  # CPU time of stacks that have all these names, in this order.
  def cpu(segments, *names)
    segments.sum do |segment|
      segment.tallies.sum do |tally|
        sum = 0
        tally.each { |node, _, cpu, _| sum += cpu * segment.unit_ns if below?(segment, node, names.dup) }
        sum
      end
    end
  end

  def below?(segment, node, names)
    while node.positive? && names.any?
      frame = segment.frame(node)
      names.pop if names.last === "#{frame.name} #{frame.path}"
      node = segment.parents[node]
    end
    names.empty?
  end

  perf_test :frames_are_below_the_methods_that_caused_them do
    ruby = record.select { |segment| segment.header.collector == "sampler" }
    assert_equal 2, ruby.size
    ruby.each do |segment|
      assert_operator cpu([segment], /\AObject#reading /, /\AIO#read /, /\Avfs_read \[kernel\]/), :>, 20_000_000
      assert_operator segment.stat("perf_joined"), :>, 20
    end
    assert_operator cpu(ruby, /\AObject#deflating /, /\AZlib.deflate /, %r{/libz\.so}), :>, 5_000_000
    assert_equal 0, cpu(ruby, /\AObject#deflating /, /\Avfs_read \[kernel\]/, /\Aread_zero /)
    assert_equal 0, cpu(ruby, /\AObject#reading /, %r{/libz\.so})
    assert_empty(ruby.flat_map { |segment| segment.threads.each_value.map(&:name) }.grep(/pitwall (?:drain|reader)/))
  end

  perf_test :a_process_without_ruby_has_native_frames_only do
    found = record.find { |segment| segment.header.program == "gzip" }
    assert_equal "perf", found.header.collector
    assert_equal [3], found.frames.each_value.map(&:kind).uniq
    assert_operator cpu([found], //), :>, 0
  end

  # Folded, the recording is one without perf: all sums are Pitwall's own.
  perf_test :sums_are_those_of_the_process do
    segment = record.find { |one| one.header.collector == "sampler" }
    folded = Pitwall::Analyse::NativeFrames.fold([segment]).first
    assert_equal cpu([segment], //), cpu([folded], //)
    assert_operator cpu([segment], //), :<=, segment.stat("process_cpu_ns") * 1.1 + 20_000_000
  end

  perf_test :with_native_the_frames_of_both_are_in_one_stack do
    ruby = record("--native").select { |segment| segment.header.collector == "sampler" }
    assert_operator cpu(ruby, /\Avm_exec_core /, /\AObject#reading /, /\Avm_exec_core /, /\AIO#read /, /\A\S+ .*libruby/,
                        /\Avfs_read \[kernel\]/), :>, 10_000_000
  end

  perf_test :beside_stacks_that_were_read_from_outside do
    skip "own walks are not in use: #{OwnWalk.refusal}" if OwnWalk.refusal
    ruby = record("--mode", "outside").select { |segment| segment.header.collector == "sampler" }
    assert_equal ["outside"], ruby.map { |segment| segment.header.mode }.uniq
    ruby.each { |segment| assert_operator segment.stat("perf_joined"), :>, 20 }
    assert_operator cpu(ruby, /\AObject#reading /, /\AIO#read /, /\Avfs_read \[kernel\]/), :>, 20_000_000
  end

  perf_test :a_duration_ends_what_perf_records do
    record("--duration", "900ms", "--quiet").each do |segment|
      assert_operator segment.stat("perf_samples"), :>=, segment.stat("perf_joined")
    end
    refute_match(/bug|perf's frames/, @result.err)
  end

  perf_test :nothing_of_perf_is_left do
    record
    assert_equal %w[.tmp app.rb x.pit], Dir.children(@dir).sort
    assert_nothing_left
  end
end
