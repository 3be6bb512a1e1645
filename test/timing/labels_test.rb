# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/labelled_program"

# How much time is whose label.
class LabelsTimingTest < Minitest::Test
  include LabelledProgram

  def settings = @settings

  # Time that was waited under a label is that label's, though it is told of when the next has begun.
  def test_shares_are_the_programs
    %w[outside signal safepoint].each do |mode|
      @settings = { mode: mode }
      run_program(PARTS)
      found = times
      assert_operator found[{ "route" => "a" }], :>=, 180_000_000 - late, mode
      assert_operator found[{ "route" => "b", "tenant" => "7" }], :>=, 180_000_000 - late, mode
      assert_operator found[{ "route" => "c" }], :>=, 90_000_000 - late, mode
      assert_operator found[{}], :<, found.values.sum * 0.6, mode
    end
  end

  # Work in short pieces with waits between, while another thread takes the ticks: in a pool, in a thread of its own, changed on the way, ended by an exception.
  POOL = <<~RUBY
    TRUTH = Hash.new(0)
    def timed(name)
      from = now
      yield
    ensure
      TRUTH[name] += now - from
    end
    def work = now.then { |from| nil while now < from + 0.03 }
    other = nil
    record(interval_ns: 5_000_000) do
      other = Thread.new { loop { sleep 0.002; burn(0.0005) } }
      queue, done = Queue.new, Queue.new
      pool = 2.times.map do
        Thread.new do
          while (name = queue.pop)
            begin
              timed(name) { Pitwall.request(route: name) { work; raise ArgumentError if name == "raises" } }
            rescue ArgumentError
              nil
            end
            done << 1
          end
        end
      end
      9.times { |n| queue << %w[a b raises][n % 3]; done.pop; sleep 0.15 }
      Thread.new do
        3.times do
          sleep 0.15
          Pitwall.request(route: "before") do
            timed("before") { work }
            Pitwall.relabel(route: "after")
            timed("after") { work; sleep 0.1 }
            Pitwall.label(route: "inner") { timed("inner") { work } }
          end
        end
      end.join
      queue.close
      pool.each(&:join)
      other.kill.join
    end
    p TRUTH
  RUBY

  # What is recorded of each is what it took: the wait before (three times 0.15 s or more) is not in it, nor is the wait in it lost.
  def test_waits_are_of_the_label_they_were_under
    %w[outside signal safepoint].each do |mode|
      @settings = { mode: mode }
      truth = eval(run_program(POOL))
      assert_sane(segment)
      found = times.each_with_object(Hash.new(0)) { |(labels, wall), sums| sums[labels["route"]] += wall / 1e9 }
      truth.each do |route, seconds|
        assert_operator found[route], :<, seconds + 0.3 + late / 1e9, "#{mode}: #{route} #{found} #{truth}"
        assert_operator found[route], :>, seconds * 0.4 - late / 1e9, "#{mode}: #{route} #{found} #{truth}"
      end
    end
  end

  # The scheduler's fiber waits, the request's works.
  def test_waits_between_fibers
    @settings = { mode: "safepoint" }
    truth = run_program(<<~RUBY)
      took = 0
      record(interval_ns: 5_000_000) do
        other = Thread.new { loop { sleep 0.002; burn(0.0005) } }
        fiber = Fiber.new { Pitwall.label(route: "fiber") { loop { from = now; nil while now < from + 0.03; took += now - from; Fiber.yield } } }
        8.times { sleep 0.1; fiber.resume }
        other.kill.join
      end
      p took
    RUBY
    found = times[{ "route" => "fiber" }] / 1e9
    assert_operator found, :<, truth.to_f + 0.4
    assert_operator found, :>, truth.to_f * 0.4
  end
end
