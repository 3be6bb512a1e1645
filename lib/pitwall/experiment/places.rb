# frozen_string_literal: true

require "pitwall/bench/blocks"
require "pitwall/experiment"
require "pitwall/experiment/same_iterations"

module Pitwall
  module Experiment
    # The code of several commits as something to measure: tried once, then compared in any pairs.
    # @api private
    class Places
      # Name of the earlier side, and of the later one.
      BEFORE = "before"
      AFTER = "after"

      # Code that can be measured. cases, calibrations: Hash by the name of the case
      Place = Struct.new(:subject, :measurer, :cases, :calibrations)
      # A side of a report.
      Side = Struct.new(:name, :facts)

      # @return [Array<String>, nil] names of the cases: those of the first place
      attr_reader :names

      #: (Settings, random: Random) -> void
      def initialize(settings, random:)
        @settings = settings
        @random = random
        @measurers = []
      end

      # Lists and calibrates the cases of a subject.
      # @raise [Pitwall::Bench::Failed] it doesn't run, or lacks a case
      #: (Pitwall::Bench::Subject) -> Place
      def place(subject)
        measurer = Measurers.for(subject, @settings)
        @measurers << measurer
        list = measurer.cases
        names = @names || @settings.select_cases(list).map(&:name)
        cases = names.to_h { |name| [name, list.find { |kase| kase.name == name } || missing(subject, name)] }
        calibrations = cases.transform_values { |kase| measurer.calibrate(kase) }
        @names = names
        Place.new(subject, measurer, cases, calibrations)
      end

      # The blocks of a comparison of two places.
      #: (String, Place, Place) -> Pitwall::Bench::Blocks
      def blocks(kase, before, after)
        in_turns = @settings.in_turns && before.subject.command.nil?
        calibrations = [before, after].map { |place| place.calibrations.fetch(kase).dup }
        SameIterations.apply(calibrations, extend: in_turns && @settings.batches.nil?)
        entries = [before, after].zip(calibrations).map do |place, calibration|
          Pitwall::Bench::Blocks::Entry.new(measurer: place.measurer, case: place.cases.fetch(kase),
                                            calibration: calibration)
        end
        Pitwall::Bench::Blocks.new(entries, random: @random, in_turns: in_turns)
      end

      # Names the samples of a block by their unit and side.
      #: (Array[Record::Sample], String, Place) -> void
      def label(samples, unit, before)
        samples.each do |sample|
          sample.side = sample.side == before.subject.name ? BEFORE : AFTER
          sample.name = unit
        end
      end

      # Removes the temporary files of the measured processes.
      #: () -> void
      def close = @measurers.each(&:close)

      private

      def missing(subject, name) = raise(Pitwall::Bench::Failed, "#{subject.name}: has no case #{name}")
    end
  end
end
