# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/collect/bench/blocks"
require "pitwall/collect/bench/host"
require "pitwall/collect/bench/name_list"
require "pitwall/experiment"

module Pitwall
  module Experiment
    # How fast the cases of files or whole commands are: blocks of one process a case, all cases of a file in each.
    class Bench
      # Fewer processes say too little, whatever the budget; more add little to an interval.
      FEWEST_BLOCKS = 5
      # With fewer no case can be told from another.
      FEWEST_COMPARED = Analyse::Sequential::MIN_PAIRS
      MOST_BLOCKS = 40
      private_constant :FEWEST_BLOCKS, :FEWEST_COMPARED, :MOST_BLOCKS

      # @return [Boolean] whether Ctrl-C ended it
      attr_reader :interrupted
      # @return [Collect::Bench::Failed, nil] what ended it, after something had been measured
      attr_reader :failure
      # @return [Hash] what the host did meanwhile (Collect::Bench::Host#readings)
      attr_reader :readings

      #: (Array[Collect::Bench::Subject], Settings, ?progress: Silence, ?record: Record::Measurements::Writer?) -> void
      def initialize(subjects, settings, progress: Silence.new, record: nil)
        @subjects = subjects
        @settings = settings
        @progress = progress
        @record = record
        @random = Random.new(settings.seed)
        @samples = []
        @cases = []
        @names = Collect::Bench::NameList.new
        @failures = 0
      end

      # Measures, and says what came out. Ctrl-C ends the measuring; what there is then is reported.
      # @param command [String] the command line that repeats it
      # @raise [Collect::Bench::Failed] a case can't be measured
      #: (command: String) -> Analyse::BenchReport
      def call(command:)
        host = Collect::Bench::Host.new
        started = clock_ns
        begin
          @subjects.each { |subject| measure(subject) }
        rescue Interrupt
          @interrupted = true
        rescue Collect::Bench::Failed => error
          raise if @samples.empty?

          @failure = error
        end
        @readings = host.readings
        settings = @settings.to_facts.merge("interrupted" => @interrupted == true)
        Analyse::BenchReport.of(@samples, cases: @cases, settings: settings, host: Collect::Bench::Host.facts, readings: Collect::Bench::Host.facts.merge(@readings),
                                          duration_ns: clock_ns - started, command: command, facts: @subjects.first.facts, losses: { "failed_blocks" => @failures })
      end

      private

      # In a file of its own every name is taken as it is; several files' cases are told apart by the file.
      def measure(subject)
        measurer = Measurers.for(subject, @settings)
        @progress.step("reading #{subject.script ? File.basename(subject.script) : subject.name}")
        measurer.cases.each { |kase| kase.name = subject.name } if subject.code
        cases = wanted(@names.tell_apart(measurer.cases, subject.script && File.basename(subject.script)))
        entries = cases.map { |kase| entry(measurer, kase) }
        blocks = Collect::Bench::Blocks.new(entries, random: @random)
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
        @cases << kase
        @record&.announce(kase)
        Collect::Bench::Blocks::Entry.new(measurer: measurer, case: kase, calibration: calibration)
      end

      def wanted(cases)
        return cases unless @settings.only

        found = cases.select { |kase| kase.name.match?(@settings.only) }
        found.empty? ? raise(UsageError, "--only #{@settings.only.source}: no case has that in its name; there are #{cases.map(&:name).first(8).join(", ")}") : found
      end

      def clock_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    end
  end
end
