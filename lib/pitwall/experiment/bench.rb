# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/bench/blocks"
require "pitwall/bench/name_list"
require "pitwall/experiment"
require "pitwall/experiment/base"

module Pitwall
  module Experiment
    # Measures the speed of benchmark cases or whole commands, in blocks. A block is one process for each case.
    class Bench < Base
      # Run at least this many blocks, even beyond the budget: fewer give too wide an interval.
      MIN_BLOCKS = 5
      # Lower limit for a file whose cases are compared: with fewer blocks no difference can be proven.
      MIN_COMPARED_BLOCKS = Analyse::Sequential::MIN_PAIRS
      # Upper limit within the budget: more blocks hardly narrow the interval.
      MAX_BLOCKS = 40
      private_constant :MIN_BLOCKS, :MIN_COMPARED_BLOCKS, :MAX_BLOCKS

      #: (Array[Pitwall::Bench::Subject], Settings, ?progress: NullProgress,
      #:  ?record: Record::Measurements::Writer?) -> void
      def initialize(...)
        super
        @names = Pitwall::Bench::NameList.new
      end

      # Measures all subjects and returns the report. After Ctrl-C the report covers the samples so far.
      # @param command [String] the command line that repeats the measurement
      # @raise [Pitwall::Bench::Failed] a case can't be measured
      #: (command: String) -> Analyse::BenchReport
      def call(command:)
        run_facts = observe { @subjects.each { |subject| measure(subject) } }
        Analyse::BenchReport.of(@samples, cases: @cases, command: command, facts: @subjects.first.facts, **run_facts)
      end

      private

      # Case names must be unique across files: NameList adds the file's name to a name that occurs again.
      def measure(subject)
        measurer = Measurers.for(subject, @settings)
        @progress.step("reading #{subject.script ? File.basename(subject.script) : subject.name}")
        measurer.cases.each { |kase| kase.name = subject.name } if subject.code
        names = @names.make_unique(measurer.cases, subject.script && File.basename(subject.script))
        cases = @settings.select_cases(names)
        entries = cases.map { |kase| entry(measurer, kase) }
        blocks = Pitwall::Bench::Blocks.new(entries, random: @random)
        deadline = clock_ns + (@settings.budget * entries.size * 1e9)
        required = min_blocks(cases)
        planned = @settings.max_blocks ||
                  ((deadline - clock_ns) / [blocks.block_ns, 1].max).floor.clamp(required, MAX_BLOCKS)
        @progress.begin(subject.script ? File.basename(subject.script) : "running", planned)
        run(blocks, planned, deadline, required)
      ensure
        @failures += blocks.failures if blocks
        @progress.end
        measurer&.close
      end

      def min_blocks(cases)
        cases.count { |kase| kase.flags.include?("compare") } > 1 ? MIN_COMPARED_BLOCKS : MIN_BLOCKS
      end

      def run(blocks, planned, deadline, required)
        until blocks.done >= planned ||
              (blocks.done >= required && @settings.max_blocks.nil? && clock_ns + blocks.block_ns > deadline)
          (blocks.run or next).each do |sample|
            @record&.add(sample)
            @samples << sample
          end
          @progress.advance
        end
      end

      def entry(measurer, kase)
        @progress.step("calibrating #{kase.name}")
        calibration = measurer.calibrate(kase)
        announce(kase)
        Pitwall::Bench::Blocks::Entry.new(measurer: measurer, case: kase, calibration: calibration)
      end
    end
  end
end
