# frozen_string_literal: true

require "fileutils"
require "shellwords"
require "pitwall/cli/support/command"
require "pitwall/cli/support/gate"
require "pitwall/cli/measuring/measured_view"
require "pitwall/cli/support/output_file"
require "pitwall/cli/measuring/progress"
require "pitwall/cli/measuring/repeated_command"
require "pitwall/bench/host"
require "pitwall/collect/place"
require "pitwall/experiment"
require "pitwall/record/measurements"
require "pitwall/show"

module Pitwall
  module CLI
    # The common part of `bench` and `compare`: run something many times, write the samples to a file, show a report.
    class Measuring < Command
      FORMATS = MeasuredView::FORMATS
      TIMEOUT = 60 # seconds that a process may take; default of --timeout
      # Metric → the option that measures it. A process can't read these counters itself: they need separate runs.
      COUNTER_OPTIONS = { "instructions" => "instructions", "fs_calls" => "syscalls",
                          "retained" => "retained", "retained_bytes" => "retained" }.freeze
      private_constant :COUNTER_OPTIONS

      # Parses the arguments and runs the verb. No word after `--` is an option of the verb.
      # Raises UsageError.
      #: (Array[String]) -> (Integer | Ending)
      def call(argv)
        cut = argv.index("--")
        @command = argv[(cut + 1)..] if cut
        raise UsageError, "no command after --: pitwall #{self.class.verb} -- CMD…" if @command&.empty?

        @argv = argv
        super(cut ? argv[0...cut] : argv)
      end

      private

      def define_running_options(parser)
        budget = "seconds for each case; a very slow case may take longer (#{default_budget.round})"
        parser.on("--budget SECONDS", Float, budget) do |seconds|
          @options[:budget] = positive("--budget", seconds)
        end
        parser.on("--warmup N", Integer, "batches of warm-up (default: until it is steady)") do |count|
          @options[:warmup] = positive("--warmup", count)
        end
        parser.on("--timeout SECONDS", Float, "upper limit for a single process (#{TIMEOUT})") do |seconds|
          @options[:timeout] = positive("--timeout", seconds)
        end
        parser.on("--only PATTERN", only_words) { |text| @options.update(only: pattern(text), only_as_typed: text) }
        parser.on("--no-pin", "let the system choose the core (default: one core, the same for all)") do
          @options[:pin] = false
        end
        parser.on("--ignore-failure", "measure commands even if their exit status is not 0") do
          @options[:allow_failure] = true
        end
        parser.on("--seed N", Integer, "seed of the random order (default: random)") { |seed| @options[:seed] = seed }
      end

      def only_words = "only cases whose name matches"

      def define_output_options(parser)
        parser.separator("")
        parser.separator("Where to")
        parser.on("--record FILE", "file for the measured values (default: a dated file in .pitwall/; " \
                                   "`pitwall report FILE` shows it again)") do |file|
          @options[:record] = file
        end
        parser.on("--out FILE", "file for the report (default and -: standard output)") { |file| @options[:out] = file }
        parser.on("--format FORMAT", FORMATS, "#{FORMATS.join(", ")} (text)") { |format| @options[:format] = format }
        parser.on("--fail-if EXPR", "exit with status 1 when EXPR holds: #{gate_example}") do |text|
          @options[:fail_if] = gate(text)
        end
        parser.on("--quiet", "no progress") { @options[:quiet] = true }
      end

      def settings(**more)
        Experiment::Settings.new(
          budget: @options.fetch(:budget, default_budget), alpha: 0.01, margin: 0.01,
          warmup: @options[:warmup], timeout: @options.fetch(:timeout, TIMEOUT), pin: @options.fetch(:pin, true),
          seed: @options[:seed] || Random.new_seed % 1_000_000, only: @options[:only],
          allow_failure: @options.fetch(:allow_failure, false), control: false, check: false, in_turns: true, **more
        )
      end

      def progress = @progress ||= Progress.on(@err, quiet: @options[:quiet])

      # Checks --out and --format before anything runs.
      # @raise [UsageError]
      def check_output(inputs)
        file = @options[:out]
        if @options[:format] == "html" && file.nil?
          raise UsageError, "--format html: a page is a file: add --out FILE.html"
        end

        return if file.nil? || file == "-"

        inputs.each do |input|
          if File.exist?(file) && File.identical?(file, input)
            raise UsageError, "--out #{file}: is what is measured; name another file"
          end
        end
        OutputFile.check(file, [@options[:record]].compact)
        OutputFile.probe(file)
      end

      # Yields the writer of the measured values. The file is created with the first value.
      def record(head)
        yield(@writer = Record::Measurements::Writer.new(record_path, head))
      rescue Record::Measurements::Writer::Taken => error
        raise UsageError, "--record #{error.message}"
      end

      # Runs an experiment and returns its report. An error that ended the experiment early is stored in @failure,
      # and raised after the report has been shown.
      # @param more [Hash] what the file's last line keeps beside
      # @raise [Interrupt] before anything was measured
      def run_experiment(experiment, writer, **more)
        report = experiment.call(command: command_line)
        raise Interrupt unless writer.begun?

        @failure = experiment.failure
        writer.finish("duration_ns" => report.duration_ns, "readings" => experiment.readings,
                      "losses" => report.losses, "interrupted" => experiment.interrupted,
                      **more.transform_keys(&:to_s))
        report
      end

      def record_path
        @record_path ||= @options[:record] || Collect::Place.default.sub(/\.pit\z/, "-#{self.class.verb}.jsonl")
      end

      def publish(text)
        case @options[:out]
        when nil, "-" then @out.puts(text)
        else OutputFile.write(@options[:out]) { |out| out.puts(text) }
        end
        @out.flush
        return if @options[:format] == "json" || @options[:quiet] || !@writer&.begun?

        path = relative(record_path)
        @err.puts("Measured values in #{path}#{"; pitwall report #{quoted(path)} shows all of them" if brief?}")
      end

      # Whether the report leaves details out.
      def brief? = false

      def rendering
        io = @options[:out].nil? || @options[:out] == "-" ? @out : nil
        { width: width(io || File), palette: palette(io || File), unicode: unicode?(io) }
      end

      # Whether the output may have other characters than ASCII. On a terminal the locale decides; files and pipes may.
      def unicode?(io) = !(io && terminal?(io)) || Encoding.find("locale") == Encoding::UTF_8

      # The exit status: 1 when a condition of `--fail-if` holds, else 0.
      # @param metrics the measured metrics
      # @yield [Gate::Condition] returns whether the condition holds
      # @raise [CannotMeasure] a condition's metric was not measured
      def judge_gate(metrics, &block)
        gate = @options[:fail_if] or return Status::OK
        missing = gate.unmeasured(metrics)
        if missing.any?
          option = COUNTER_OPTIONS[missing.first]
          raise CannotMeasure, "--fail-if: no #{missing.first} was measured#{"; add --#{option}" if option}"
        end

        failed = gate.failed(&block)
        failed.each { |condition| @err.puts("pitwall: --fail-if: #{condition.text}") }
        failed.empty? ? Status::OK : Status::WORSE
      end

      def relative(path) = path.delete_prefix("#{Dir.pwd}/")

      # The command line that repeats the measurement.
      def command_line = RepeatedCommand.line(["pitwall", self.class.verb, *@argv])

      def quoted(word) = RepeatedCommand.quoted(word)

      def positive(option, number)
        number.positive? ? number : raise(UsageError, "#{option} #{number}: must be more than 0")
      end

      def percent(option, text)
        number = text[/\A(\d+(?:\.\d+)?)%?\z/, 1] or raise UsageError, "#{option} #{text}: takes a percentage: 1%"
        share = number.to_f / 100
        share.positive? && share < 1 ? share : raise(UsageError, "#{option} #{text}: must lie between 0% and 100%")
      end

      def pattern(text)
        Regexp.new(text)
      rescue RegexpError => error
        raise UsageError, "--only #{text}: #{error.message}"
      end

      def recorded?(path)
        Record::Measurements.file?(path) || (File.file?(path) && File.binread(path, 8) == "PITWALL ")
      end

      # A benchmark file's absolute path.
      # @raise [UsageError] the path is no readable file, or a recording
      def script(path)
        raise UsageError, "#{path}: no such file" unless File.exist?(path)
        raise UsageError, "#{path}: a folder; name a benchmark file" if File.directory?(path)
        raise UsageError, "#{path}: cannot be read" unless File.readable?(path)
        raise UsageError, "#{path}: is a recording, not a benchmark: pitwall report #{path} shows it" if recorded?(path)

        File.expand_path(path)
      end
    end
  end
end
