# frozen_string_literal: true

require "tmpdir"
require "pitwall/bench/instructions"
require "pitwall/launch/parts"
require "pitwall/launch/target_environment"
require "pitwall/record"

module Pitwall
  module Bench
    # Counts by a recording of what is compared. A subclass says in COUNTED what ("calls"), in OPTIONS what the recorded
    # processes collect, and which segments tell (`told?`) how many (`sum`).
    # Otherwise as {Instructions}: a few runs of each side, and of a benchmark what a longer run has more than a short one.
    class RecordedCounts < Instructions
      private

      def collected(entry, calibration)
        words, environment = entry.measurer.plain_run(entry.case, calibration)
        Dir.mktmpdir("pitwall-#{counted}") do |folder|
          parts = Launch::Parts.new(File.join(folder, "parts"))
          Dir.mkdir(parts.path, 0o700)
          environment = environment.to_h
          recorded = Launch::TargetEnvironment.new(parts: parts.path, options: self.class::OPTIONS).to_h(ENV.to_h.merge(environment))
          limit = [calibration.process_ns / 1e9 * 20, 60].max
          finished = Execution.new(words, env: environment.merge(recorded), dir: entry.measurer.subject.dir, timeout: limit).call
          raise Failed, "did not end within #{limit.round} s while its #{counted} were counted" if finished.timed_out

          sum(segments(parts, File.join(folder, "#{counted}.pit")))
        end
      end

      def segments(parts, recording)
        messages = parts.messages
        merged = parts.merge_into(recording, first: 0)
        raise Failed, messages.first || "it ran no Ruby whose #{counted} could be counted" unless merged.any?

        found = Record.read(recording).segments.select { |segment| told?(segment) }
        raise Failed, "its #{counted} could not be counted" if found.empty?

        found
      end

      def counted = self.class::COUNTED
    end
  end
end
