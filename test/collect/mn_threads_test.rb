# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/allocating_program"
require_relative "../support/mn_program"

# Threads that share native threads (M:N, Ruby 3.3 and newer): with RUBY_MN_THREADS=1 in the main Ractor, in other Ractors always.
class MNThreadsTest < Minitest::Test
  include AllocatingProgram
  include MNProgram

  # More threads than native ones, that come, wait for each other and go.
  def test_many_threads_that_come_and_go
    each_mode(interval_ns: 100_000) do |mode|
      out = run_mn(<<~'RUBY')
        queue = SizedQueue.new(5)
        lock = Mutex.new
        done = 0
        record do
          20.times do
            Array.new(25) { |i| Thread.new { queue << i; lock.synchronize { done += queue.pop; Thread.pass }; sleep 0.001 if i % 5 == 0; [i].map(&:to_s) } }.each(&:join)
          end
          50.times { Thread.new { raise "x" }.tap { |t| t.report_on_exception = false }.join rescue nil }
          20.times { Thread.new { sleep }.tap { Thread.pass }.kill.join }
        end
        puts done
      RUBY
      assert_equal 20 * 300, out.to_i
      assert_sane(segment)
      assert_empty segment.threads.values.select { |info| info.native_id.zero? }, mode # each ran somewhere
      assert_equal 0, segment.stat("refused_frames"), mode
    end
  end

  # (Threads within Ractors are left out: Rubies 3.3.8 and 3.4.11 themselves hang with these under M:N, most of the time.)
  # Ruby 3.4.11 hung in 2 of 128 runs of this program without Pitwall.
  def test_ractors_beside_threads
    skip "Ruby 3.4 itself hangs now and then with Ractors beside M:N threads" if RUBY_VERSION.start_with?("3.4.")

    each_mode do |mode|
      run_mn(<<~'RUBY')
        value = ->(ractor) { ractor.respond_to?(:value) ? ractor.value : ractor.take }
        record do
          threads = Array.new(3) { Thread.new { 60_000.times { |i| i.to_s } } }
          ractors = Array.new(3) { Ractor.new { 60_000.times { |i| i.to_s }; sleep 0.01; 1 } }
          ractors.each { |ractor| value.call(ractor) }
          threads.each(&:join)
        end
      RUBY
      assert_sane(segment)
      spent = segment.stat("process_cpu_ns")
      assert_operator threads_of(segment).sum(&:cpu), :<=, spent + 50_000_000, mode
    end
  end

  def test_forks
    each_mode(interval_ns: 100_000) do |mode|
      run_mn(<<~'RUBY')
        record do
          busy = Array.new(3) { Thread.new { loop { [1].map(&:to_s); Thread.pass } } }
          6.times { Process.wait(fork { Thread.new { 2000.times { |i| i.to_s } }.join }); abort $?.to_s unless $?.success? }
          busy.each(&:kill).each(&:join)
        end
      RUBY
      assert_sane(segment)
      Dir.children(@dir).grep(/\Aa-\d+\.pit\z/).each { |name| read(name).segments.each { |one| assert_sane(one) } && File.delete(file(name)) }
      assert mode
    end
  end

  # Counts are exact whoever carries whom.
  def test_a_trace_counts_every_call
    run_mn(<<~'RUBY')
      def callee(i) = i
      def caller_of(n) = n.times { |i| callee(i) }
      Pitwall.trace(record: "a.pit") do
        Array.new(12) { Thread.new { 5.times { caller_of(100); sleep 0.001; Thread.pass } } }.each(&:join)
      end
    RUBY
    calls = Hash.new(0)
    segment.calls.each { |row| calls[segment.frame(row.node_id).name] += row.calls unless row.node_id.zero? }
    assert_equal [60, 6000], calls.values_at("Object#caller_of", "Object#callee")
    segment.calls.each { |row| assert_operator row.wall, :<=, segment.stat("elapsed_ns") + 1_000_000 }
    assert_equal 0, segment.tracing["lost_calls"]
  end

  def test_every_object_is_counted
    run_mn(<<~'RUBY')
      Thing = Class.new
      def make(n) = n.times { Thing.new }
      follow("a.pit", { "stacks" => "1" }) { Array.new(12) { Thread.new { 5.times { make(100); sleep 0.001; Thread.pass } } }.each(&:join); GC.start }
    RUBY
    assert_balanced(segment)
    assert_equal 6000, by_line[[2, "Thing"]]
  end

  # What can't be told is said.
  def test_the_header_says_so
    run_mn("record { burn(0.01) }")
    assert(segment.header.notes.any? { |note| note.include?("M:N") }, segment.header.notes.inspect)
    run_program("record { burn(0.01) }")
    refute(segment.header.notes.any? { |note| note.include?("M:N") })
  end
end if RUBY_VERSION >= "3.3"
