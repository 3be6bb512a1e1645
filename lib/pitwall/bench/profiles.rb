# frozen_string_literal: true

require "pitwall/bench/execution"
require "pitwall/bench/error_line"
require "pitwall/launch/parts"
require "pitwall/launch/target_environment"
require "pitwall/record"

module Pitwall
  module Bench
    # Profiles of the compared sides. Every side runs several times under the sampler, in blocks of one run each and in
    # random order, as the samples do. Profiles are not timed: they show where time goes, not how much.
    class Profiles
      # The child's methods that run the timed loop. Frames that are not below one of them belong to the start-up. The
      # second name is in recordings of older versions.
      WITHIN = ["Pitwall::Bench::Work#run", "Pitwall::Collect::Bench::Work#run"].freeze
      # Runs of each side. Three runs would not show a change beside the differences between processes. Short commands
      # run more often, so that they have as many samples in all.
      RUNS = (6..20).freeze
      # How long the benchmark of a run lasts, in seconds: two thousand samples.
      SECONDS = 1.0
      INTERVAL_NS = 500_000
      FLUSH_NS = 100_000_000 # a killed process loses at most its samples of this time
      private_constant :FLUSH_NS

      # recordings: by entry, in the given order, an Array with the Record::Recording of each run
      # iterations: by entry, the iterations of each run; nil if a run ended before its recording was complete
      # within:     names of methods for Analyse::ProfileChange; empty for whole commands
      # reason:     why there are no profiles, one line; the other fields are then empty
      Result = Struct.new(:recordings, :iterations, :within, :reason, keyword_init: true)

      # @param entries [Array<Blocks::Entry>] measurer, case and calibration of each side
      # @param folder [String] an existing folder for the recordings
      # @param random [Random] decides the order
      # @param runs [Integer, nil] runs of each side; nil: by the time of a run
      # @param seconds [Numeric] how long a benchmark runs; a whole command runs to its end
      # @param timeout [Numeric] seconds after which a run is given up
      # @param progress [#call, nil] called with the runs done and the runs in all
      #: (Array[Blocks::Entry], folder: String, random: Random, **untyped) -> void
      def initialize(entries, folder:, random:, runs: nil, seconds: SECONDS, interval_ns: INTERVAL_NS, timeout: 60,
                     progress: nil)
        @entries = entries
        @folder = folder
        @random = random
        @runs = runs || number_of_runs(seconds)
        @interval_ns = interval_ns
        @timeout = timeout
        @progress = progress
        @calibrations = entries.map { |entry| lengthen(entry.calibration, seconds) }
      end

      #: () -> Result
      def call
        recordings = @entries.map { [] }
        @runs.times do |run|
          @entries.each_index.to_a.shuffle(random: @random).each do |side|
            recordings[side] << record(side, run)
            @progress&.call(recordings.sum(&:size), @runs * @entries.size)
          end
        end
        within = @entries.all? { |entry| command?(entry) } ? [] : WITHIN
        Result.new(recordings: recordings, iterations: iterations(recordings), within: within)
      rescue Unusable => error
        Result.new(recordings: [], iterations: [], within: [], reason: error.message)
      end

      # A run gave no profile. Without that run the sides would not be comparable.
      class Unusable < StandardError; end
      private_constant :Unusable

      private

      def command?(entry) = !entry.measurer.subject.command.nil?

      def number_of_runs(seconds)
        shortest = @entries.map { |entry| command?(entry) ? entry.calibration.iteration_ns : seconds * 1e9 }.min
        (RUNS.first * seconds * 1e9 / [shortest, 1].max).ceil.clamp(RUNS)
      end

      # At least ten batches: the first batch may be slower than the others.
      def lengthen(calibration, seconds)
        batch_ns = calibration.batch * calibration.iteration_ns
        return calibration.dup unless batch_ns.positive?

        calibration.dup.tap { |longer| longer.batches = [(seconds * 1e9 / batch_ns).ceil, 10].max }
      end

      def record(side, run)
        entry = @entries[side]
        stem = File.join(@folder, "side-#{side + 1}-run-#{run + 1}")
        Dir.mkdir("#{stem}.parts", 0o700)
        parts = Launch::Parts.new("#{stem}.parts")
        finished = execute(entry, side, parts)
        messages = parts.messages
        merged = parts.merge_into("#{stem}.pit", first: 0)
        check(entry, finished, merged, messages)
        Record.read("#{stem}.pit")
      rescue BadRecording, CannotMeasure => error
        raise Unusable, "#{label(entry)}: #{error.message}"
      end

      def execute(entry, side, parts)
        words, environment = entry.measurer.plain_run(entry.case, @calibrations[side])
        environment = environment.to_h
        options = { interval_ns: @interval_ns, mode: "signal", signal: "URG", flush_ns: FLUSH_NS, keep_argv: 0 }
        profiled = Launch::TargetEnvironment.new(parts: parts.path, options: options).to_h(ENV.to_h.merge(environment))
        Execution.new(words, env: environment.merge(profiled), dir: entry.measurer.subject.dir, timeout: @timeout).call
      end

      def check(entry, finished, merged, messages)
        if finished.timed_out
          raise Unusable, "#{label(entry)}: did not end within #{@timeout.round} s under the profiler; " \
                          "--timeout SECONDS allows more"
        end
        raise Unusable, "#{label(entry)}: #{ending(finished)} under the profiler" unless finished.success?
        return if merged.any?

        raise Unusable, "#{label(entry)}: #{messages.first || "it ran no Ruby that could be recorded"}"
      end

      def ending(finished)
        error = finished.lines.map { |line| line.split("\t") }.find { |kind,| kind == "error" }
        return "#{error[2]}: #{error[3]}" if error

        line = ErrorLine.of(finished.errors)
        signal = finished.signal
        ending = signal ? "was killed by SIG#{Signal.signame(signal)}" : "ended with status #{finished.exit}"
        line.empty? ? ending : "#{ending} (#{line})"
      end

      # The recording of a process that ended without stopping it lacks the last samples.
      def iterations(recordings)
        complete = recordings.flatten.all? { |recording| recording.segments.all?(&:tail) }
        @entries.zip(@calibrations).map do |entry, calibration|
          (command?(entry) ? 1 : calibration.batch * calibration.batches) if complete
        end
      end

      def label(entry)
        name = entry.measurer.subject.name.to_s
        name.empty? ? "no profile" : "no profile of #{name}"
      end
    end
  end
end
