# frozen_string_literal: true

require "pitwall/record/sample"
require "pitwall/bench/execution"
require "pitwall/bench/failed"
require "pitwall/bench/said"
require "pitwall/launch"
require "pitwall/bench/script"

module Pitwall
  module Bench
    # A whole command as something to measure: each run is one sample of one iteration.
    # It answers what {Script} answers, with one case.
    class WholeCommand
      # What a program says that misses its gems.
      GEMS = /cannot load such file|Could not (?:find|locate)|Bundler|Gem::/.freeze
      private_constant :GEMS

      # @return [Subject]
      attr_reader :subject

      #: (Subject, ?cpu: Integer, ?timeout: Numeric, ?allow_failure: bool, ?output: IO | String) -> void
      # @param allow_failure [Boolean] whether a status other than 0 is a result like any other
      def initialize(subject, cpu: -1, timeout: 60, allow_failure: false, output: File::NULL)
        @subject = subject
        @cpu = cpu
        @timeout = timeout
        @allow_failure = allow_failure
        @output = output
      end

      #: () -> Array[Record::Case]
      def cases = [Record::Case.new(index: 0, block: 0, block_name: "", name: subject.command.join(" "), label: subject.command.join(" "), params: {}, flags: [])]

      # Runs it once, which also fills the machine's file cache.
      #: (Record::Case) -> Script::Calibration
      def calibrate(_case)
        usage = run
        Script::Calibration.new(batch: 1, batches: 1, warmup: 0, process_ns: usage.fetch("wall"), iteration_ns: usage.fetch("wall"))
      end

      #: (Record::Case, Script::Calibration, block: Integer, order: Integer) -> Record::Sample
      def sample(kase, _calibration, block:, order:)
        usage = run
        usage["cpu"] = usage["user"] + usage["system"]
        Record::Sample.new(side: subject.name, name: kase.name, block: block, order: order, values: usage.transform_values { |value| [value] },
                           iterations: 1, first_ns: nil, warmup: 0, digest: nil, notes: [])
      end

      #: (Record::Case, Script::Calibration) -> [Array[String], Hash[String, String?]]
      def plain_run(_case, _calibration) = [subject.command, subject.env]

      # There is nothing to remove.
      #: () -> void
      def close; end

      private

      def run
        finished = Execution.new(subject.command, env: subject.env, dir: subject.dir, cpu: @cpu, timeout: @timeout, output: @output).call
        refuse(finished) unless finished.success? || (@allow_failure && finished.exit && !finished.error)
        finished.usage
      end

      def refuse(finished)
        program = subject.command.first
        raise Launch::NotFound, "#{program}: command not found" if finished.error == Errno::ENOENT::Errno
        raise Launch::NotExecutable, "#{program}: not executable: #{SystemCallError.new(finished.error).message}" if finished.error
        raise Failed, "#{label}: did not end within #{format("%g", @timeout)} s; --timeout SECONDS allows more" if finished.timed_out
        raise Failed, "#{label}: was killed by SIG#{Signal.signame(finished.signal)}" if finished.signal

        said = Said.line(finished.errors)
        without = "--no-bundle runs it without #{bundle}; " if bundle && said.match?(GEMS)
        raise Failed, "#{label}: ended with status #{finished.exit}#{" (#{said})" unless said.empty?}; #{without}--ignore-failure measures it all the same"
      end

      # What of a Bundler was put around it, in a clone: the program may have one of its own.
      def bundle = subject.root && subject.env["BUNDLE_GEMFILE"]&.then { |gemfile| File.basename(gemfile) if gemfile.start_with?("#{subject.root}/") }

      def label = "#{subject.command.join(" ")}#{" (#{subject.name})" unless subject.name.to_s.empty?}"
    end
  end
end
