# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/cli/measuring/measured_view"
require "pitwall/record/measurements"

module Pitwall
  module CLI
    # The report of a run of `bench` or `compare`, from the file it left: the same as it was then.
    class SavedMeasurement
      Side = Struct.new(:name, :facts)
      private_constant :Side

      #: (Array[String]) -> void
      # @raise [UsageError] more than one file
      def initialize(files)
        raise UsageError, "#{files[1]}: one file of measurements at a time" if files.size > 1

        @file = files.first
      end

      # @raise [BadRecording]
      #: (String, Integer, untyped) -> String
      def render(format, width, palette)
        contents = Record::Measurements.read(@file)
        report = contents.head["kind"] == "compare" ? comparison(contents) : bench(contents)
        MeasuredView.render(report, format, width: width, palette: palette)
      end

      # Why there is nothing to say of why, and what would say it.
      # @raise [BadRecording]
      #: () -> String
      def without_profiles
        head = Record::Measurements.read(@file).head
        return "#{@file} is of bench, which measures one side; compare says why two differ" unless head["kind"] == "compare"

        command = head["command"].to_s
        command = command.sub(/\A(pitwall compare)(?! .*--why)/, '\1 --why')
        "#{@file} keeps times and counts, no profiles; to measure and profile again: #{command}"
      end

      private

      def comparison(contents)
        sides = Array(contents.head["sides"]).map { |side| Side.new(side["name"].to_s, side["facts"].to_h) }
        raise BadRecording, "#{@file}: names no sides" if sides.size < 2

        Analyse::ComparisonReport.of(contents.samples, plans: contents.plans, sides: sides, **common(contents))
      end

      def bench(contents) = Analyse::BenchReport.of(contents.samples, facts: contents.head["facts"].to_h, **common(contents))

      def common(contents)
        head, tail = contents.head, contents.tail.to_h
        settings = head["settings"].to_h.merge("interrupted" => !contents.ended? || tail["interrupted"] == true)
        host = head["host"].to_h
        { cases: contents.cases, settings: settings, host: host, readings: host.merge(tail["readings"].to_h), losses: tail["losses"].to_h,
          duration_ns: tail["duration_ns"], command: head["command"].to_s }
      end
    end
  end
end
