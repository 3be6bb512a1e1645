# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/bench/blocks"
require "pitwall/bench/name_list"
require "pitwall/experiment"
require "pitwall/experiment/base"

module Pitwall
  module Experiment
    # How fast the cases of files or whole commands are: blocks of one process a case, all cases of a file in each.
    class Bench < Base
      # Fewer processes say too little, whatever the budget; more add little to an interval.
      FEWEST_BLOCKS = 5
      # With fewer no case can be told from another.
      FEWEST_COMPARED = Analyse::Sequential::MIN_PAIRS
      MOST_BLOCKS = 40
      private_constant :FEWEST_BLOCKS, :FEWEST_COMPARED, :MOST_BLOCKS

      #: (Array[Pitwall::Bench::Subject], Settings, ?progress: Silence, ?record: Record::Measurements::Writer?) -> void
      def initialize(...)
        super
        @names = Pitwall::Bench::NameList.new
      end

      # Measures, and says what came out. Ctrl-C ends the measuring; what there is then is reported.
      # @param command [String] the command line that repeats it
      # @raise [Pitwall::Bench::Failed] a case can't be measured
      #: (command: String) -> Analyse::BenchReport
      def call(command:)
        made = observe { @subjects.each { |subject| measure(subject) } }
        Analyse::BenchReport.of(@samples, cases: @cases, command: command, facts: @subjects.first.facts, **made)
      end

      private

      # In a file of its own every name is taken as it is; several files' cases are told apart by the file.
      def measure(subject)
        measurer = Measurers.for(subject, @settings)
        @progress.step("reading #{subject.script ? File.basename(subject.script) : subject.name}")
        measurer.cases.each { |kase| kase.name = subject.name } if subject.code
        cases = @settings.chosen(@names.tell_apart(measurer.cases, subject.script && File.basename(subject.script)))
        entries = cases.map { |kase| entry(measurer, kase) }
        blocks = Pitwall::Bench::Blocks.new(entries, random: @random)
        deadline = clock_ns + (@settings.budget * entries.size * 1e9)
        least = fewest(cases)
        planned = (@settings.max_blocks || ((deadline - clock_ns) / [blocks.block_ns, 1].max).floor.clamp(least, MOST_BLOCKS))
        @progress.begin(subject.script ? File.basename(subject.script) : "running", planned)
        run(blocks, planned, deadline, least)
      ensure
        @failures += blocks.failures if blocks
        @progress.end
        measurer&.close
      end

      def fewest(cases) = cases.count { |kase| kase.flags.include?("compare") } > 1 ? FEWEST_COMPARED : FEWEST_BLOCKS

      def run(blocks, planned, deadline, least)
        until blocks.done >= planned || (blocks.done >= least && @settings.max_blocks.nil? && clock_ns + blocks.block_ns > deadline)
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
