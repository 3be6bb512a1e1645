# frozen_string_literal: true

require "tmpdir"
require "pitwall/collect/bench/instructions"
require "pitwall/collect/launch/parts"
require "pitwall/collect/launch/target_environment"
require "pitwall/record"

module Pitwall
  module Collect
    module Bench
      # Counts the file-system calls of what is compared, as `pitwall syscalls --count` does: those of its Ruby processes, from when Pitwall is loaded.
      # Otherwise as {Instructions}: a few runs of each side, and of a benchmark what a longer run has more than a short one.
      class SystemCalls < Instructions
        OPTIONS = { mode: "none", flush_ns: 100_000_000, keep_argv: 0, "syscalls.count": 1, "syscalls.stacks": 0, "syscalls.io": 0 }.freeze
        private_constant :OPTIONS

        private

        def collected(entry, calibration)
          words, environment = entry.measurer.plain_run(entry.case, calibration)
          Dir.mktmpdir("pitwall-calls") do |folder|
            parts = Launch::Parts.new(File.join(folder, "parts"))
            Dir.mkdir(parts.path, 0o700)
            environment = environment.to_h
            traced = Launch::TargetEnvironment.new(parts: parts.path, options: OPTIONS).to_h(ENV.to_h.merge(environment))
            limit = [calibration.process_ns / 1e9 * 20, 60].max
            finished = Execution.new(words, env: environment.merge(traced), dir: entry.measurer.subject.dir, timeout: limit).call
            raise Failed, "did not end within #{limit.round} s while its calls were counted" if finished.timed_out

            total(parts, File.join(folder, "calls.pit"))
          end
        end

        def total(parts, recording)
          messages = parts.messages
          merged = parts.merge_into(recording, first: 0)
          raise Failed, messages.first || "it ran no Ruby whose calls could be counted" unless merged.any?

          segments = Record.read(recording).segments.select(&:syscalls?)
          raise Failed, "its calls could not be counted" if segments.empty?

          segments.sum { |segment| segment.syscall_totals.values.sum(&:first) }
        end
      end
    end
  end
end
