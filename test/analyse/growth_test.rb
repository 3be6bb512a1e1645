# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/analyse"
require "pitwall/analyse/allocations/growth"

class GrowthTest < Minitest::Test
  Growth = Pitwall::Analyse::Growth

  FUNCTIONS = {
    constant: ->(_) { 1.0 }, log: ->(n) { Math.log(n) }, linear: ->(n) { n.to_f }, n_log_n: ->(n) { n * Math.log(n) },
    quadratic: ->(n) { n**2.0 }, cubic: ->(n) { n**3.0 }, exponential: ->(n) { 2.0**n }
  }.freeze
  DOUBLING = Array.new(6) { |at| 1000 << at }.freeze
  SWEEPS = [DOUBLING, DOUBLING.first(5), Array.new(8) { |at| 1000 << at }, [10, 100, 1000, 10_000, 100_000],
            [100, 300, 1000, 3000, 10_000, 30_000]].freeze
  EXPONENTIAL_SWEEPS = [[10, 12, 14, 16, 18, 20], [5, 10, 15, 20, 25], [4, 6, 8, 10, 12, 14, 16, 18]].freeze
  # Share of the time at the smallest N.
  OVERHEADS = [0, 0.3, 1, 10].freeze
  NOISES = [0.01, 0.02, 0.05].freeze

  # Measured: requiring N empty files, in seconds, best of 5.
  FILES = [2000, 4000, 8000, 16_000, 32_000].freeze
  WITHOUT_INDEX = [0.286, 0.838, 2.775, 10.677, 42.531].freeze
  WITH_INDEX = [0.145, 0.241, 0.700, 2.547, 10.053].freeze

  def test_planted_orders_are_found_or_left_open_and_hardly_ever_wrong
    tally = planted_cases
    decided = tally.values.sum { |row| row[:right] + row[:wrong] }
    wrong = tally.values.sum { |row| row[:wrong] }
    assert_operator tally.values.sum { |row| row.values.sum }, :>, 900
    assert_operator wrong, :<=, 0.01 * decided, tally.inspect
    least = { constant: 0.8, log: 0.8, linear: 0.8, n_log_n: 0.8, quadratic: 0.97, cubic: 0.97, exponential: 0.97 }
    least.each do |order, share|
      row = tally.fetch(order)
      assert_operator row[:right].fdiv(row.values.sum), :>=, share, "#{order}: #{row.inspect}"
      # If the order is undecided, the true order is among the candidates.
      assert_operator row[:possible] + row[:right], :>=, 0.98 * row.values.sum, "#{order}: #{row.inspect}"
    end
  end

  def test_requiring_n_empty_files_is_quadratic
    fit = fit_of(FILES, WITHOUT_INDEX.map { |seconds| [seconds * 1e9] })
    assert_equal :quadratic, fit.order
    assert_equal [0.1, 0.2, 0.3, 0.7, 1.3], fit.points.map { |point| (point.per_item.point / 1e6).round(1) }
    assert_in_delta 9.3, fit.per_item_ratio.point, 0.05
    assert_includes fit.sentence, "quadratic"
    assert_includes fit.sentence, "an item costs 9.29x as much at N = 32000 as at N = 2000"
    assert_equal %i[constant quadratic], fit.coefficients.keys
    fit.points.each { |point| assert_in_delta 1, point.fitted / point.time.point, 0.1 }
    assert_nil fit.points.first.exponent
    assert_in_delta 1.99, fit.points.last.exponent, 0.01
  end

  def test_the_speed_up_column_of_the_field_notes
    base = fit_of(FILES, WITHOUT_INDEX.map { |seconds| [seconds * 1e9] })
    other = fit_of(FILES, WITH_INDEX.map { |seconds| [seconds * 1e9] })
    comparison = Growth.against(base, other)
    assert_equal([2.0, 3.5, 4.0, 4.2, 4.2], comparison.rows.map { |row| row.speed_up.point.round(1) })
    assert_equal %i[quadratic quadratic], comparison.orders
    assert_equal false, comparison.changed
    assert_equal "1.97x the speed at N = 2000, 4.23x at N = 32000; the order stayed quadratic", comparison.sentence
    refute comparison.rows.first.speed_up.interval?, "one value on each side has no interval"
  end

  def test_a_changed_order_is_said
    random = Random.new(7)
    base, other = %i[quadratic linear].map { |order| Growth.fit(planted(random, order, DOUBLING, 8, 0.02, 0.3)) }
    comparison = Growth.against(base, other)
    assert_equal true, comparison.changed
    assert_includes comparison.sentence, "the order changed from quadratic to linear"
    speed_ups = comparison.rows.map(&:speed_up)
    assert speed_ups.all?(&:interval?)
    assert speed_ups.all? { |estimate| estimate.point.between?(estimate.low, estimate.high) }
  end

  def test_speed_ups_cover_the_truth
    random = Random.new(11)
    covered = Array.new(300) do
      base, other = [3.0, 2.0].map do |time|
        Growth.fit([{ n: 10, values: Array.new(8) { time * Math.exp(0.05 * normal(random)) } }])
      end
      estimate = Growth.against(base, other, level: 0.95).rows.first.speed_up
      estimate.low <= 1.5 && estimate.high >= 1.5
    end.count(true)
    assert_in_delta 0.95, covered / 300.0, 0.04
  end

  def test_pairs_leave_out_what_both_saw
    weather = [1.0, 1.5, 0.8, 1.2, 2.0, 0.9]
    base, other = [[2.0, 1.0], [1.0, 1.01]].map do |time, wobble|
      Growth.fit([{ n: 10,
                    values: weather.each_with_index.map { |factor, at| time * factor * (at.even? ? wobble : 1) } }])
    end
    alone, paired = [false, true].map { |pairs| Growth.against(base, other, paired: pairs).rows.first.speed_up }
    assert_operator paired.high / paired.low, :<, 1.03
    assert_operator alone.high / alone.low, :>, 1.5
    assert_in_delta 2.0, paired.point, 0.02
  end

  def test_a_time_of_zero_has_no_speed_up
    one, two = [0.0, 2.0].map { |time| Growth.fit([{ n: 10, values: [time] }, { n: 20, values: [1.0] }]) }
    assert_equal [20], Growth.against(one, two).rows.map(&:n)
  end

  def test_versions_without_a_common_n
    one, two = [10, 20].map { |n| Growth.fit([{ n: n, values: [1.0] }]) }
    comparison = Growth.against(one, two)
    assert_empty comparison.rows
    assert_includes comparison.sentence, "no N in common"
  end

  def test_a_peak_and_a_step_fit_no_simple_order
    peak = fit_of(DOUBLING, DOUBLING.map { |n| around(n == 8000 ? 1.8 * n : n) })
    assert_equal :no_simple_order, peak.reason
    assert_nil peak.order
    assert_empty peak.candidates
    assert_equal 8000, peak.outlier[:n]
    assert_match(/no simple order fits: N = 8000 took 1\.\d+x what .* growth would give/, peak.sentence)
    step = fit_of(DOUBLING, DOUBLING.map { |n| around(n > 8000 ? 3.0 : 1.0) })
    assert_equal :no_simple_order, step.reason
    falling = fit_of(DOUBLING, DOUBLING.map { |n| around(1e6 / n) })
    assert_equal :no_simple_order, falling.reason
  end

  def test_powers_between_the_orders_are_none_of_them
    [0.5, 1.5, 2.5].each do |power|
      fit = fit_of(DOUBLING, DOUBLING.map { |n| around(n**power) })
      assert_equal :no_simple_order, fit.reason, power
      assert_in_delta power, fit.exponent, 0.02
      assert_includes fit.sentence, "N^#{power}"
      assert_nil fit.coefficients
    end
  end

  def test_quadratic_code_has_a_linear_part
    fit = fit_of(DOUBLING, DOUBLING.map { |n| around(100.0 * n + n * n / 160.0) })
    assert_equal :quadratic, fit.order
    assert_in_delta 1 / 160.0, fit.coefficients[:quadratic], 0.001
    assert_in_delta 100, fit.coefficients[:linear], 10
  end

  def test_coefficients_are_those_planted
    fit = fit_of(DOUBLING, DOUBLING.map { |n| around(5000 + 3.0 * n) })
    assert_equal :linear, fit.order
    assert_in_delta 3.0, fit.coefficients[:linear], 0.05
    assert_in_delta 5000, fit.coefficients[:constant], 300
    fit = fit_of([4, 8, 12, 16], [4, 8, 12, 16].map { |n| around(7.0 * 2**n) })
    assert_equal :exponential, fit.order
    assert_in_delta 2.0, fit.coefficients[:base], 0.02
    assert_in_delta 7.0, fit.coefficients[:exponential], 0.8
  end

  def test_a_narrow_noisy_sweep_names_what_is_possible
    sizes = [1000, 1100, 1200, 1300]
    fit = fit_of(sizes, [1.02, 1.05, 1.27, 1.25].map { |factor| [1e6 * factor] })
    assert_nil fit.order
    assert_equal :unclear, fit.reason
    assert_operator fit.candidates.size, :>, 1
    assert_includes fit.sentence, "can't tell"
    assert_in_delta 1, fit.weights.values.sum, 1e-9
  end

  def test_what_cannot_be_fitted_says_why
    fit = fit_of([1, 2, 3], [[1.0], [2.0], [3.0]])
    assert_equal :too_few_sizes, fit.reason
    assert_includes fit.sentence, "at least 4 different N (3 measured)"
    assert_in_delta 1, fit.exponent, 1e-9
    assert_equal :too_few_sizes, Growth.fit([]).reason
    assert_equal :too_few_sizes, fit_of([5, 5, 5, 5], [[1.0]] * 4).reason
    [[0, 1], [1, 0]].each do |n, time|
      fit = fit_of([n, 2, 3, 4], [[time], [1.0], [2.0], [3.0]])
      assert_equal :no_times, fit.reason
      assert_includes fit.sentence, "more than 0"
    end
    assert_equal 4, fit_of([1, 2, 3, 4], [[1.0], [2.0], [3.0], [4.0]]).points.size
  end

  def test_the_unit_of_time_does_not_matter
    each_sweep do |points|
      plain = Growth.fit(points)
      scaled = Growth.fit(points.map { |point| { n: point[:n], values: point[:values].map { |value| value * 1e3 } } })
      assert_equal [plain.order, plain.reason, plain.candidates], [scaled.order, scaled.reason, scaled.candidates]
      assert_in_delta plain.confidence, scaled.confidence, 1e-6
      assert_in_delta plain.exponent, scaled.exponent, 1e-9
      plain.points.zip(scaled.points) do |before, after|
        assert_in_delta 1e3, after.per_item.point / before.per_item.point, 1e-6
      end
    end
  end

  def test_the_order_of_points_and_processes_does_not_matter
    each_sweep do |points|
      single = points.flat_map { |point| point[:values].map { |value| { n: point[:n], values: [value] } } }
      shuffled = single.shuffle(random: Random.new(3))
      plain, other = Growth.fit(points), Growth.fit(shuffled)
      assert_equal [plain.order, plain.candidates, plain.points.map(&:n)],
                   [other.order, other.candidates, other.points.map(&:n)]
      assert_in_delta plain.confidence, other.confidence, 1e-9
    end
  end

  private

  def fit_of(sizes, values) = Growth.fit(sizes.zip(values).map { |n, list| { n: n, values: list } })

  # Three processes whose times differ by 1%.
  def around(time) = [0.99, 1.0, 1.01].map { |factor| time * factor }

  def normal(random) = Math.sqrt(-2 * Math.log(1 - random.rand)) * Math.cos(2 * Math::PI * random.rand)

  def planted(random, order, sizes, processes, noise, overhead)
    function = FUNCTIONS.fetch(order)
    start = overhead * function.call(sizes.first)
    sizes.map do |n|
      { n: n, values: Array.new(processes) { 1e4 * (start + function.call(n)) * Math.exp(noise * normal(random)) } }
    end
  end

  # Order → {right:, wrong:, possible: (undecided, with the true order among the candidates), other:}
  def planted_cases
    random = Random.new(20_261)
    FUNCTIONS.keys.to_h do |order|
      row = { right: 0, wrong: 0, possible: 0, other: 0 }
      sweeps = order == :exponential ? EXPONENTIAL_SWEEPS : SWEEPS
      overheads = { constant: [0] * 3, log: OVERHEADS.first(3) }.fetch(order, OVERHEADS)
      NOISES.product([1, 3, 8], sweeps, overheads) do |noise, processes, sizes, overhead|
        row[judged(Growth.fit(planted(random, order, sizes, processes, noise, overhead)), order)] += 1
      end
      [order, row]
    end
  end

  def judged(fit, order)
    return fit.order == order ? :right : :wrong if fit.decided?

    fit.candidates.include?(order) ? :possible : :other
  end

  def each_sweep
    random = Random.new(5)
    FUNCTIONS.each_key do |order|
      yield planted(random, order, order == :exponential ? EXPONENTIAL_SWEEPS.first : DOUBLING, 5, 0.03, 0.5)
    end
  end
end
