# frozen_string_literal: true

require "pitwall/bench/turns"

module Pitwall
  module Experiment
    # Gives all sides of a case the same number of iterations.
    # @api private
    module SameIterations
      # Upper limit of a slower side's batch time, relative to the base's batch time.
      MAX_SLOWDOWN = 10
      private_constant :MAX_SLOWDOWN

      # Changes the calibrations: all get the base's iterations, or fewer where a batch of the slowest side would take
      # more than MAX_SLOWDOWN times the base's time.
      # @param calibrations of each side, the base first
      # @param extend [Boolean] whether to take more batches where batches are short
      #: (Array[Pitwall::Bench::Script::Calibration], extend: bool) -> void
      def self.apply(calibrations, extend:)
        share = MAX_SLOWDOWN * calibrations.first.iteration_ns / calibrations.map(&:iteration_ns).max
        batch = [(calibrations.first.batch * [share, 1].min).floor, 1].max
        batches = calibrations.map(&:batches).min
        calibrations.each { |calibration| calibration.batch, calibration.batches = batch, batches }
        Pitwall::Bench::Turns.extend(calibrations) if extend
      end
    end
  end
end
