# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/analyse"

# The search for a commit, with ratios of a known truth and noise.
class CommitSearchTest < Minitest::Test
  Search = Pitwall::Analyse::CommitSearch

  # Searches; the truth is a list of each place's logarithm relative to place 0.
  def search(truth, noise:, random:, most: 60, alpha: 0.01, left_out: [])
    search = Search.new(truth.size, alpha: alpha)
    while (task = search.task)
      if (missing = task.find { |place| left_out.include?(place) })
        search.leave_out(missing)
        next
      end
      search.plan(most)
      nil until search.add(truth[task[1]] - truth[task[0]] + normal(random, noise))
    end
    search
  end

  def normal(random, noise) = noise * Math.sqrt(-2 * Math.log(1 - random.rand)) * Math.cos(2 * Math::PI * random.rand)

  def step(places, at, size) = Array.new(places) { |place| place >= at ? Math.log(1 + size) : 0.0 }

  # At an alpha of 20% with much noise. The bound holds with room: the sum of shares is an upper limit.
  def test_the_wrong_commit_is_named_less_often_than_alpha_says
    random = Random.new(4)
    found = Array.new(150) do
      places = random.rand(2..24)
      at = random.rand(1...places)
      result = search(step(places, at, 0.03), noise: 0.03, random: random, alpha: 0.2)
      result.verdict == :found ? result.high == at : nil
    end
    assert_operator found.count(false), :<=, 0.2 * found.size
    assert_operator found.count(true), :>, 0.5 * found.size
  end

  def test_little_noise_finds_every_commit_with_few_tests
    random = Random.new(5)
    [-0.05, 0.03, 1.0].product([2, 3, 9, 16]).each do |size, places|
      (1...places).each do |at|
        result = search(step(places, at, size), noise: 0.005, random: random)
        assert_equal [:found, at - 1, at], [result.verdict, result.low, result.high], "#{places} places, #{at}"
        halves = result.done.count { |test| test.kind == :half }
        assert_operator halves, :<=, Math.log2(places).ceil
        assert_includes result.done.last.estimate.low..result.done.last.estimate.high, 1 + size if places > 2 && at == 1
      end
    end
  end

  def test_ends_that_are_the_same
    result = search(Array.new(9, 0.0), noise: 0.003, random: Random.new(6))
    assert_equal [:same, 1], [result.verdict, result.done.size]
  end

  def test_too_much_noise_is_undecided_and_keeps_what_is_left
    result = search(step(9, 4, 0.03), noise: 0.5, random: Random.new(7))
    assert_equal [:undecided, 0, 8], [result.verdict, result.low, result.high]
    empty = Search.new(3)
    empty.task
    empty.plan(8)
    empty.finish
    assert_equal [:undecided, nil], [empty.verdict, empty.task]
  end

  # Places that can't be measured stay in the answer.
  def test_places_that_cannot_be_measured
    result = search(step(9, 5, 0.1), noise: 0.005, random: Random.new(8), left_out: [4, 5])
    assert_equal [:found, 3, 6], [result.verdict, result.low, result.high]
    result = search(step(4, 2, 0.1), noise: 0.005, random: Random.new(9), left_out: [1, 2])
    assert_equal [:found, 0, 3], [result.verdict, result.low, result.high]
  end

  # The shares of alpha are for ⌈log2 8⌉ tests, whatever places are left out.
  def test_no_more_tests_than_shares_with_places_left_out
    random = Random.new(10)
    (1..7).flat_map { |size| (1..7).to_a.combination(size).first(7) }.product([1, 4, 8]).each do |left_out, at|
      result = search(step(9, at, 0.1), noise: 0.001, random: random, left_out: left_out)
      assert_equal :found, result.verdict
      assert_includes result.low + 1..result.high, at
      assert_operator result.done.count { |test| test.kind == :half }, :<=, 3, "without #{left_out}, #{at}"
    end
  end
end
