# frozen_string_literal: true

require "tmpdir"
require "pitwall/bench/instructions"
require "pitwall/launch/parts"
require "pitwall/launch/target_environment"
require "pitwall/record"

module Pitwall
  module Bench
    # Counts by recordings of the compared sides. As in {Instructions}, each side has a few runs, and a benchmark's
    # count is the difference between a longer run and a shorter one.
    #
    # A subclass has UNIT, the name of the counted things ("calls"), and OPTIONS, the collector's options for the
    # recorded processes. `counted?(segment)` says whether a segment has counts, and `sum(segments)` adds them up.
    class RecordedCounts < Instructions
      # No samples and no argument values: only the counts are read.
      COUNTS_ONLY = { mode: "none", keep_argv: 0 }.freeze
      SLOWDOWN = 20 # the time limit, relative to a normal run
      private_constant :COUNTS_ONLY, :SLOWDOWN

      private

      def collected(entry, calibration)
        words, environment = entry.measurer.plain_run(entry.case, calibration)
        Dir.mktmpdir("pitwall-#{unit}") do |folder|
          parts = Launch::Parts.new(File.join(folder, "parts"))
          Dir.mkdir(parts.path, 0o700)
          environment = recorded_environment(environment.to_h, parts)
          limit = [calibration.process_ns / 1e9 * SLOWDOWN, 60].max
          finished = Execution.new(words, env: environment, dir: entry.measurer.subject.dir, timeout: limit).call
          raise Failed, "did not end within #{limit.round} s while its #{unit} were counted" if finished.timed_out

          sum(segments(parts, File.join(folder, "#{unit}.pit")))
        end
      end

      def recorded_environment(environment, parts)
        target = Launch::TargetEnvironment.new(parts: parts.path, options: { **COUNTS_ONLY, **self.class::OPTIONS })
        environment.merge(target.to_h(ENV.to_h.merge(environment)))
      end

      def segments(parts, recording)
        messages = parts.messages
        merged = parts.merge_into(recording, first: 0)
        raise Failed, messages.first || "it ran no Ruby whose #{unit} could be counted" unless merged.any?

        found = Record.read(recording).segments.select { |segment| counted?(segment) }
        raise Failed, "its #{unit} could not be counted" if found.empty?

        found
      end

      def unit = self.class::UNIT
    end
  end
end
