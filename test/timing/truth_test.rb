# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/recorded_program"
require_relative "../support/recorded_threads"

# Programs that know what they spent where: the recording says the same. (How exactly is measured by benchmarks/sampler;
# here the bounds are wide enough for a busy machine.)
class TruthTimingTest < Minitest::Test
  include RecordedProgram

  POINTS = 3.0
  # On a busy machine looks from outside come late, and what was between is not known.
  POINTS_OUTSIDE = 8.0
  # Without thread events a thread that lost its core looks like one that waited, and safepoint mode has no better clock.
  POINTS_IN_THE_DARK = 12.0
  THREAD_EVENTS = RUBY_VERSION >= "3.2"

  # Records a program of benchmarks/programs for some seconds; returns its ground truth.
  def truth_of(program, constant, seconds, **settings)
    json = run_program(<<~RUBY)
      load "#{Checkout::ROOT}/benchmarks/programs/#{program}.rb"
      program = Programs::#{constant}.new(#{seconds})
      truth = record(**#{settings.inspect}) { program.run }.value
      puts JSON.generate(truth)
    RUBY
    JSON.parse(json)
  end

  # A method's share, in percent, of what is below the root method.
  def shares(tree, root, names, weight)
    rows = Pitwall::Analyse::Flat.rows(tree, weight).group_by { |row| row.method.name[/[\w<>]+\z/] }
    whole = rows.fetch(root).map(&:total).max.to_f
    names.to_h { |name| [name, rows.fetch(name, []).map(&:total).max.to_i * 100 / whole] }
  end

  def assert_shares(truth, thread, tree, root, weight, points = POINTS)
    sections = thread["sections"]
    measured = shares(tree, root, sections.keys, weight)
    whole = thread["#{weight}_ns"].to_f
    sections.each do |name, spent|
      assert_in_delta spent["#{weight}_ns"] * 100 / whole, measured[name], points, "#{weight} of #{name} in #{truth["program"]}"
    end
  end

  def test_shares_of_one_thread_by_signal
    truth = truth_of("truth", "Truth", 2, mode: "signal")
    tree = tree(segment)
    %i[wall cpu].each { |weight| assert_shares(truth, truth["threads"][0], tree, truth["root"], weight) }
    assert_sane(segment)
  end

  def test_shares_of_one_thread_from_outside
    truth = truth_of("truth", "Truth", 2, mode: "outside")
    %i[wall cpu].each { |weight| assert_shares(truth, truth["threads"][0], tree(segment), truth["root"], weight, THREAD_EVENTS ? POINTS_OUTSIDE : POINTS_IN_THE_DARK) }
    assert_sane(segment)
  end

  def test_shares_of_one_thread_at_safepoints
    truth = truth_of("truth", "Truth", 2, mode: "safepoint")
    %i[wall cpu].each { |weight| assert_shares(truth, truth["threads"][0], tree(segment), truth["root"], weight, THREAD_EVENTS ? POINTS * 2 : POINTS_IN_THE_DARK) }
    assert_sane(segment)
  end

  def test_shares_of_four_threads_by_signal = shares_of_four_threads(POINTS, mode: "signal")
  def test_shares_of_four_threads_from_outside = shares_of_four_threads(POINTS_OUTSIDE, mode: "outside")

  def shares_of_four_threads(points, **settings)
    truth = truth_of("truth_threads", "TruthThreads", 2, **settings)
    truth["threads"].each do |thread|
      id = threads_of(segment).find { |row| row.native_id == thread["native_thread_id"] }.id
      own = tree(segment.with(tallies: segment.tallies.select { |tally| tally.thread_id == id }))
      assert_shares(truth, thread, own, truth["root"], :cpu, points)
      row = threads_of(segment).find { |one| one.id == id }
      assert_in_delta thread["cpu_ns"], row.cpu, thread["cpu_ns"] * 0.01 + 15_000_000, thread["name"]
      assert_shares(truth, thread, own, truth["root"], :wall, points) if THREAD_EVENTS || (RecordedThreads::WATCHED && settings[:mode] == "signal")
    end
    assert_sane(segment)
  end
end
