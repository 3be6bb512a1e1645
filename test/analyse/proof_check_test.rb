# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/measured"
require "pitwall/analyse"
require "pitwall/record/proof"

# What a proof says, held against a new measurement.
class ProofCheckTest < Minitest::Test
  include Measured

  def claim(verdict, point = nil, metric: "wall", **more)
    Pitwall::Record::Claim.new(name: "join n=100", metric: metric, values: "1 → 2", point: point, pairs: 24,
                               verdict: verdict, small: false, exact: false, **more)
  end

  def check(claims, effects) = Pitwall::Analyse::ProofCheck.new([claims].flatten, [effects].flatten)

  def test_the_verdict_of_a_claim
    faster = claim(:faster, 0.8)
    {
      effect(:faster, [0.82, 0.80, 0.84]) => :holds, effect(:faster, [0.5, 0.4, 0.6]) => :holds,
      effect(:faster, [0.91, 0.88, 0.94]) => :holds, # half of it is in the interval: ln 0.88 / ln 0.8 = 0.57
      effect(:faster, [0.95, 0.93, 0.97]) => :smaller, effect(:slower, [1.1, 1.05, 1.15]) => :fails,
      effect(:same, [1.0, 0.995, 1.005]) => :fails, effect(:undecided, [0.9, 0.7, 1.1]) => :undecided,
      effect(:faster, [0.8, 0.7, 0.9], name: "other") => :missing,
      effect(:faster, [0.8, 0.7, 0.9], metric: "cpu") => :missing
    }.each { |effect, verdict| assert_equal verdict, check(faster, effect).outcomes.first.verdict, effect.inspect }
  end

  def test_claims_of_no_difference
    same = claim(:same, 1.0)
    assert_equal :holds, check(same, effect(:same, [1.0, 0.995, 1.005])).verdict
    assert_equal :holds, check(same, effect(:slower, [1.004, 1.002, 1.006], below_margin: true)).verdict
    assert_equal :fails, check(same, effect(:slower, [1.04, 1.02, 1.06])).verdict
    small = claim(:faster, 0.997, small: true)
    assert_equal :holds, check(small, effect(:same, [1.0, 0.995, 1.005])).verdict
    assert_equal :fails, check(small, effect(:faster, [0.9, 0.8, 0.95])).verdict
  end

  def test_counts
    fewer = claim(:fewer, 0.5, metric: "objects", exact: true)
    assert_equal :holds, check(fewer, exact(:fewer, 20, 11)).verdict
    assert_equal :smaller, check(fewer, exact(:fewer, 20, 16)).outcomes.first.verdict
    assert_equal :fails, check(fewer, exact(:fewer, 20, 16)).verdict
    assert_equal :fails, check(fewer, exact(:same, 20, 20)).verdict
    none = claim(:fewer, 0.0, metric: "objects", exact: true)
    assert_equal :holds, check(none, exact(:fewer, 20, 0)).verdict
    assert_equal :smaller, check(none, exact(:fewer, 20, 1)).outcomes.first.verdict
    assert_equal :holds, check(claim(:more, nil, metric: "objects", exact: true), exact(:more, 0, 5)).verdict
  end

  def test_the_verdict_of_the_whole
    objects = claim(:fewer, 0.5, metric: "objects")
    unclear = [effect(:undecided, [0.9, 0.7, 1.1]), exact(:fewer, 20, 10)]
    assert_equal :undecided, check([claim(:faster, 0.8), objects], unclear).verdict
    assert_equal :holds, check([claim(:undecided, 0.9), objects], unclear).verdict
    assert_equal :fails, check([claim(:faster, 0.8), claim(:more, 2.0, metric: "objects")], unclear).verdict
    assert_equal :undecided, check([claim(:undecided, 0.9)], unclear).verdict
  end
end
