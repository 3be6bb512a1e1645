# frozen_string_literal: true

# Prints CRITICAL of lib/pitwall/analyse/history/change_points.rb: for each length the scores that a share of random
# permutations reaches. Ranks don't depend on the noise, so the table fits every benchmark.
#
#   ruby benchmarks/support/change_point_quantiles.rb

require_relative "../../lib/pitwall/analyse/history/change_points"

module Benchmarks
  module ChangePointQuantiles
    SHARES = [0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001].freeze
    SIZES = { 10 => 4000, 14 => 4000, 20 => 4000, 30 => 4000, 50 => 4000, 100 => 4000, 200 => 4000, 500 => 2000,
              1000 => 1000 }.freeze

    # The smallest score that at most a share of the permutations reaches.
    #: (Integer, Integer, Random) -> Array[Float]
    def self.of(size, count, random)
      scores = Array.new(count) { Pitwall::Analyse::ChangePoints.score((1..size).to_a.shuffle(random: random)) }.sort
      SHARES.map do |share|
        found = scores.uniq.find { |score| scores.count { |other| other >= score } <= share * count }
        (found || (scores.last + 0.01)).floor(2)
      end
    end
  end
end

if $PROGRAM_NAME == __FILE__
  random = Random.new(1)
  Benchmarks::ChangePointQuantiles::SIZES.each do |size, count|
    puts "#{size} => #{Benchmarks::ChangePointQuantiles.of(size, count, random)},"
  end
end
