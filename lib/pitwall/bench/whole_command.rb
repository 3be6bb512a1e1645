# frozen_string_literal: true

require "pitwall/record/sample"
require "pitwall/bench/execution"
require "pitwall/bench/failed"
require "pitwall/bench/error_line"
require "pitwall/launch"
require "pitwall/bench/script"

module Pitwall
  module Bench
    # A whole command as something to measure. Each run is one sample of one iteration. It has the methods of {Script},
    # and one case.
    class WholeCommand
      # The error of a program whose gems are missing.
      MISSING_GEMS = /cannot load such file|Could not (?:find|locate)|Bundler|Gem::/.freeze
      private_constant :MISSING_GEMS

      # @return [Subject]
      attr_reader :subject

      # @param allow_failure [Boolean] whether to measure runs that end with a status other than 0
      #: (Subject, ?cpu: Integer, ?timeout: Numeric, ?allow_failure: bool, ?output: IO | String) -> void
      def initialize(subject, cpu: -1, timeout: 60, allow_failure: false, output: File::NULL)
        @subject = subject
        @cpu = cpu
        @timeout = timeout
        @allow_failure = allow_failure
        @output = output
      end

      #: () -> Array[Record::Case]
      def cases
        name = subject.command.join(" ")
        [Record::Case.new(index: 0, block: 0, block_name: "", name: name, label: name, params: {}, flags: [])]
      end

      # Runs the command once. This also fills the machine's file cache.
      #: (Record::Case) -> Script::Calibration
      def calibrate(_case)
        wall_ns = run.fetch("wall")
        Script::Calibration.new(batch: 1, batches: 1, warmup: 0, process_ns: wall_ns, iteration_ns: wall_ns)
      end

      #: (Record::Case, Script::Calibration, block: Integer, order: Integer) -> Record::Sample
      def sample(kase, _calibration, block:, order:)
        usage = run
        usage["cpu"] = usage["user"] + usage["system"]
        Record::Sample.new(side: subject.name, name: kase.name, block: block, order: order, iterations: 1,
                           values: usage.transform_values { |value| [value] },
                           first_ns: nil, warmup: 0, digest: nil, notes: [])
      end

      #: (Record::Case, Script::Calibration) -> [Array[String], Hash[String, String?]]
      def plain_run(_case, _calibration) = [subject.command, subject.env]

      # Does nothing: a command needs no temporary file.
      #: () -> void
      def close; end

      private

      def run
        finished = Execution.new(subject.command, env: subject.env, dir: subject.dir, cpu: @cpu, timeout: @timeout,
                                                  output: @output).call
        raise_failure(finished) unless finished.success? || (@allow_failure && finished.exit && !finished.error)
        finished.usage
      end

      def raise_failure(finished)
        raise_exec_failure(finished.error) if finished.error
        if finished.timed_out
          raise Failed.new("#{label}: did not end within #{format("%g", @timeout)} s", advice: { timeout: nil })
        end
        raise Failed, "#{label}: was killed by SIG#{Signal.signame(finished.signal)}" if finished.signal

        line = ErrorLine.of(finished.errors)
        reason = " (#{line})" unless line.empty?
        advice = gemfile && line.match?(MISSING_GEMS) ? { without_bundle: gemfile, failure: nil } : { failure: nil }
        raise Failed.new("#{label}: ended with status #{finished.exit}#{reason}", advice: advice)
      end

      def raise_exec_failure(errno)
        program = subject.command.first
        raise Launch::NotFound, "#{program}: command not found" if errno == Errno::ENOENT::Errno

        raise Launch::NotExecutable, "#{program}: not executable: #{SystemCallError.new(errno).message}"
      end

      # The Gemfile that Pitwall set for a command in a clone, or nil. The program may have a Gemfile of its own.
      def gemfile
        path = subject.env["BUNDLE_GEMFILE"]
        File.basename(path) if subject.root && path&.start_with?("#{subject.root}/")
      end

      def label = "#{subject.command.join(" ")}#{" (#{subject.name})" unless subject.name.to_s.empty?}"
    end
  end
end
