# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/cli/measuring/measured_view"
require "pitwall/record/measurements"

module Pitwall
  module CLI
    # Shows the report of an earlier run of `bench` or `compare` again, from the file that the run wrote.
    class SavedMeasurement
      Side = Struct.new(:name, :facts)
      private_constant :Side

      # @raise [UsageError] more than one file
      #: (Array[String]) -> void
      def initialize(files)
        raise UsageError, "#{files[1]}: one file of measurements at a time" if files.size > 1

        @file = files.first
      end

      # The report in a format ("text", "json", "markdown" or "html").
      # @param width columns of the text
      # @raise [BadRecording]
      #: (String, Integer, untyped) -> String
      def render(format, width, palette)
        MeasuredView.render(report, format, width: width, palette: palette)
      end

      # @raise [BadRecording]
      #: () -> (Analyse::ComparisonReport | Analyse::BenchReport)
      def report = @report ||= comparison? ? comparison : bench

      # Whether the file is of `compare`.
      # @raise [BadRecording]
      #: () -> bool
      def comparison? = head["kind"] == "compare"

      # The file's first line: what was measured, and how.
      # @raise [BadRecording]
      #: () -> Hash[String, untyped]
      def head = contents.head

      # One line for `--why`: why the file has no profiles, and the command that would record them.
      # @raise [BadRecording]
      #: () -> String
      def without_profiles
        unless comparison?
          return "#{@file} is of bench, which measures one side; compare says why two differ"
        end

        command = head["command"].to_s
        command = command.sub(/\A(pitwall compare)(?! .*--why)/, '\1 --why')
        "#{@file} keeps times and counts, no profiles; to measure and profile again: #{command}"
      end

      private

      def contents = @contents ||= Record::Measurements.read(@file)

      def comparison
        sides = Array(contents.head["sides"]).map { |side| Side.new(side["name"].to_s, side["facts"].to_h) }
        raise BadRecording, "#{@file}: names no sides" if sides.size < 2

        report = Analyse::ComparisonReport.of(contents.samples, plans: contents.plans, sides: sides,
                                                                counts: contents.counts, **common)
        commits, search = contents.tail.to_h.values_at("commits", "search")
        report.search = search if search.is_a?(Hash)
        report.commits = Analyse::CommitEffects.new(report, commits) if commits.is_a?(Hash)
        report
      end

      def bench = Analyse::BenchReport.of(contents.samples, facts: head["facts"].to_h, **common)

      def common
        tail = contents.tail.to_h
        settings = head["settings"].to_h.merge("interrupted" => !contents.ended? || tail["interrupted"] == true)
        host = head["host"].to_h
        { cases: contents.cases, settings: settings, host: host, readings: host.merge(tail["readings"].to_h),
          losses: tail["losses"].to_h, duration_ns: tail["duration_ns"], command: head["command"].to_s }
      end
    end
  end
end
