# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/labelled_program"
require "pitwall/analyse"

# Labels that a program sets, as the recording has them.
class LabelsTest < Minitest::Test
  include LabelledProgram

  # By signals, where a test says nothing else: a reader on another core may come late on a busy machine.
  def settings = @settings || { mode: "signal" }

  # However a sample is taken, and in whatever state: under a label is under that label. (timing/labels_test says how much of it.)
  def test_labels_are_the_programs
    %w[outside signal safepoint].each do |mode|
      @settings = { mode: mode }
      run_program(PARTS)
      assert_sane(segment)
      assert_equal [{}, { "route" => "a" }, { "route" => "b", "tenant" => "7" }, { "route" => "c" }], times.keys.sort_by(&:inspect).rotate(-1), mode
    end
  end

  def test_each_thread_has_its_own
    run_program(<<~RUBY)
      record do
        threads = %w[a b].map { |name| Thread.new { Pitwall.label(job: name) { burn(0.1); Thread.new { raise unless Pitwall.labels.empty?; burn(0.05) }.join } } }
        threads.each(&:join)
      end
    RUBY
    by_thread = segment.tallies.group_by(&:thread_id).transform_values { |tallies| tallies.map { |tally| segment.labels(tally.label_id) }.uniq - [{}] }
    assert_equal [[], [], [], [{ "job" => "a" }], [{ "job" => "b" }]], by_thread.values.sort_by(&:to_s)
  end

  FIBERS = <<~RUBY
    record do
      fibers = %w[a b].map do |name|
        Fiber.new { Pitwall.label(route: name) { 4.times { burn(0.03); Fiber.yield }; print Pitwall.labels[:route] } }
      end
      5.times { fibers.each(&:resume); raise Pitwall.labels.inspect unless Pitwall.labels.empty?; burn(0.02) }
    end
  RUBY

  def test_each_fiber_has_its_own
    assert_equal "ab", run_program(FIBERS)
    found = times
    %w[a b].each { |name| assert_operator found[{ "route" => name }], :>=, 100_000_000, name }
    assert_operator found[{}], :>=, 80_000_000
  end

  def test_fibers_inherit_where_ruby_lets_them
    run_program(<<~RUBY)
      record do
        Pitwall.label(route: "outer") { Fiber.new { burn(0.1); Fiber.yield; burn(0.1) }.then { |fiber| fiber.resume; fiber.resume } }
        Fiber.new { burn(0.1) }.resume
      end
    RUBY
    inherits = Fiber.respond_to?(:[])
    assert_equal inherits, (times(weight: :cpu)[{ "route" => "outer" }] > 150_000_000)
    assert_operator times[{}], :>=, inherits ? 80_000_000 : 250_000_000
  end

  def test_they_go_on_in_the_next_recording
    run_program(<<~RUBY)
      Pitwall.start(record: "a.pit", interval_ns: 1_000_000)
      fiber = Fiber.new { Pitwall.label(route: "fiber") { Fiber.yield; burn(0.1); raise unless Pitwall.labels == { route: "fiber" } } }
      fiber.resume
      Pitwall.label(route: "outer") do
        Pitwall.label(step: 1) do
          Pitwall.stop
          Pitwall.start(record: "b.pit", interval_ns: 1_000_000)
          burn(0.1)
        end
        burn(0.1)
        Thread.new { fiber = nil }.join
      end
      Pitwall.stop
    RUBY
    found = times(segment("b.pit"))
    assert_operator found[{ "route" => "outer", "step" => "1" }], :>=, 80_000_000
    assert_operator found[{ "route" => "outer" }], :>=, 80_000_000
  end

  def test_a_fiber_that_comes_back_in_the_next_recording
    run_program(<<~RUBY)
      Pitwall.start(record: "a.pit")
      fiber = Fiber.new { Pitwall.label(route: "fiber") { Fiber.yield; burn(0.1) } }
      fiber.resume
      Pitwall.stop
      Pitwall.start(record: "b.pit")
      Pitwall.label(other: 1) { burn(0.05) } # a fiber's switch is looked at once there are labels
      fiber.resume
      burn(0.05)
      Pitwall.stop
    RUBY
    assert_operator times(segment("b.pit"))[{ "route" => "fiber" }], :>=, 80_000_000
  end

  def test_a_forked_child_goes_on_under_them
    run_program(<<~RUBY)
      record do
        Pitwall.label(route: "parent") { Process.wait(fork { burn(0.2); Pitwall.label(job: "child") { burn(0.2) } }) }
      end
    RUBY
    child = Dir[file("a-*.pit")].fetch(0)
    found = times(segment(File.basename(child)))
    assert_operator found[{ "route" => "parent" }], :>=, 50_000_000 # of 200: the start in the child takes some
    assert_operator found[{ "route" => "parent", "job" => "child" }], :>=, 150_000_000
  end

  def test_raising_and_throwing_puts_them_back
    run_program(<<~RUBY)
      record do
        catch(:out) { Pitwall.label(route: "a") { throw :out } }
        begin; Pitwall.label(route: "b") { raise "x" }; rescue; end
        [1].each { Pitwall.label(route: "c") { break } }
        raise unless Pitwall.labels.empty?
        Pitwall.label(a: 1) { Pitwall.relabel(a: 2, b: 3); raise unless Pitwall.labels == { a: "2", b: "3" }; burn(0.05) }
        raise unless Pitwall.labels.empty?
        Pitwall.relabel(a: 9)
        burn(0.1)
      end
    RUBY
    assert_equal({ "a" => "2", "b" => "3" }, times(weight: :cpu).reject { |labels, _| labels.empty? }.max_by(&:last).first)
    assert_operator times[{}], :>=, 80_000_000
  end

  def test_too_many_are_counted_together
    run_program("record { 5000.times { |n| Pitwall.label(id: n) { } }; Pitwall.label(id: :last) { burn(0.1) }; Pitwall.label(id: 3) { burn(0.1) } }")
    assert_equal 4096 + 1 + 1, segment.label_sets.size
    assert_equal 905, segment.stat("labels_left_out")
    assert_operator times[{ "id" => "(other)" }], :>=, 80_000_000
    assert_operator times[{ "id" => "3" }], :>=, 80_000_000
    assert_match(/more sets of labels than a recording holds: 905/, Pitwall::Analyse::Summary.new([segment]).notes.join)
  end

  def test_without_a_recording_the_block_runs
    assert_equal "7{}", run_program('require "pitwall"; print Pitwall.label(route: "x") { 7 }, Pitwall.request(a: 1) { Pitwall.labels }')
  end

  # Bytes of any kind, long ones, objects.
  def test_odd_values
    run_program('record { Pitwall.label(a: "x\xFF", b: "é" * 1000, c: 1.5, "d e": :f, g: "") { burn(0.3) } }')
    labels = times.keys.find(&:any?)
    assert_equal ["x\\xFF", "é" * 200 + "…", "1.5", "f", ""], labels.values_at("a", "b", "c", "d e", "g")
  end

  def test_marks
    run_program(<<~RUBY)
      record do
        Pitwall.request(route: "slow") { burn(0.1) }
        200.times { Pitwall.request(route: "fast") { Pitwall.relabel(route: "quick") } }
        Thread.new { Pitwall.request(route: "sleepy") { sleep 0.05 } }.join
      end
    RUBY
    works = segment.works.to_h { |work| [segment.labels(work.label_id)["route"], work] }
    assert_equal({ "slow" => 1, "quick" => 200, "sleepy" => 1 }, works.transform_values(&:count))
    slow = segment.marks.max_by(&:duration_ns)
    assert_equal "slow", segment.labels(slow.label_id)["route"]
    assert_operator slow.duration_ns, :>=, 100_000_000
    assert_operator slow.start_ns, :>=, 0
    assert_operator segment.marks.size, :<=, 64 * 3
    assert_includes segment.marks.map { |mark| segment.labels(mark.label_id)["route"] }, "sleepy"
  end

  def test_many_threads_fibers_and_recordings_at_once
    run_program(<<~RUBY)
      stop = false
      Pitwall.start(record: "a.pit", interval_ns: 100_000)
      workers = 4.times.map do |t|
        Thread.new do
          n = 0
          until stop
            Pitwall.request(worker: t, n: n % 50) do
              fiber = Fiber.new { Pitwall.label(fiber: 1) { Fiber.yield 1 }; [1] * 10 }
              fiber.resume
              Pitwall.label(step: n % 3) { fiber.resume }
              "x" * 100
            end
            n += 1
            Thread.pass # or the main thread waits long for each of its turns
          end
        end
      end
      5.times { |n| sleep 0.1; GC.compact; Pitwall.stop; Pitwall.start(record: "r\#{n}.pit", interval_ns: 100_000) }
      Process.wait(fork { Pitwall.label(child: 1) { burn(0.05) } })
      stop = true
      workers.each(&:join)
      Pitwall.stop
    RUBY
    (["a.pit"] + Array.new(5) { |n| "r#{n}.pit" }).each do |name|
      segment = segment(name)
      assert_sane(segment)
      assert_includes segment.label_sets.compact.flat_map(&:keys), "worker"
    end
  end

  def test_under_stress
    run_program(<<~RUBY)
      record do
        GC.stress = true
        40.times { |n| Pitwall.label(n: n) { Fiber.new { Pitwall.label(f: n) { Fiber.yield } }.resume } }
        GC.stress = false
        burn(0.02)
      end
    RUBY
    assert_operator segment.label_sets.size, :>, 40
  end
end
