# frozen_string_literal: true

require "fileutils"
require "shellwords"
require "pitwall/cli/support/command"
require "pitwall/cli/measuring/gate"
require "pitwall/cli/measuring/measured_view"
require "pitwall/cli/support/output_file"
require "pitwall/cli/measuring/progress"
require "pitwall/bench/host"
require "pitwall/collect/place"
require "pitwall/experiment"
require "pitwall/record/measurements"
require "pitwall/show"

module Pitwall
  module CLI
    # What `bench` and `compare` have in common: they run something many times, keep what it measured in a file, and show it.
    class Measuring < Command
      FORMATS = MeasuredView::FORMATS
      TIMEOUT = 60 # seconds a process may take where nobody says otherwise
      PLAIN = %r{\A[\w@%+=:,./^-]+\z}.freeze # words that a shell leaves alone
      # Counters that no process can read of itself, and the option that has them counted.
      COUNTED_APART = { "instructions" => "instructions", "fs_calls" => "syscalls", "retained" => "retained", "retained_bytes" => "retained" }.freeze
      private_constant :PLAIN, :COUNTED_APART

      # `-- CMD…` is the command's own: nothing in it is an option of the verb.
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
        parser.on("--budget SECONDS", Float, "seconds for each case, if it isn't a very slow one (#{default_budget.round})") { |seconds| @options[:budget] = positive("--budget", seconds) }
        parser.on("--warmup N", Integer, "batches of warm-up (default: until it is steady)") { |count| @options[:warmup] = positive("--warmup", count) }
        parser.on("--timeout SECONDS", Float, "one process may take so long (#{TIMEOUT})") { |seconds| @options[:timeout] = positive("--timeout", seconds) }
        parser.on("--only PATTERN", "cases whose name matches") { |text| @options[:only] = pattern(text) }
        parser.on("--no-pin", "let the system choose the core (default: one core, the same for all)") { @options[:pin] = false }
        parser.on("--ignore-failure", "measure commands whatever status they end with") { @options[:allow_failure] = true }
        parser.on("--seed N", Integer, "of the random order (default: a new one)") { |seed| @options[:seed] = seed }
      end

      def define_output_options(parser)
        parser.separator("")
        parser.separator("Where to")
        parser.on("--record FILE", "what was measured (default: a dated file in .pitwall/; `pitwall report FILE` shows it again)") { |file| @options[:record] = file }
        parser.on("--out FILE", "the report (default, and -: standard output)") { |file| @options[:out] = file }
        parser.on("--format FORMAT", FORMATS, "#{FORMATS.join(", ")} (text)") { |format| @options[:format] = format }
        parser.on("--fail-if EXPR", "end with status 1 when it holds: #{gate_example}") { |text| @options[:fail_if] = gate(text) }
        parser.on("--quiet", "no progress") { @options[:quiet] = true }
      end

      def settings(**more)
        Experiment::Settings.new(
          budget: @options.fetch(:budget, default_budget), alpha: 0.01, margin: 0.01, warmup: @options[:warmup], timeout: @options.fetch(:timeout, TIMEOUT),
          pin: @options.fetch(:pin, true), seed: @options[:seed] || Random.new_seed % 1_000_000, only: @options[:only],
          allow_failure: @options.fetch(:allow_failure, false), control: false, check: false, in_turns: true, **more
        )
      end

      def progress = @progress ||= Progress.on(@err, quiet: @options[:quiet])

      # Everything that can be known to fail is, before anything runs.
      def check_output(inputs)
        file = @options[:out]
        raise UsageError, "--format html: a page is a file: add --out FILE.html" if @options[:format] == "html" && file.nil?
        return if file.nil? || file == "-"

        inputs.each { |input| raise UsageError, "--out #{file}: is what is measured; name another file" if File.exist?(file) && File.identical?(file, input) }
        OutputFile.check(file, [@options[:record]].compact)
        OutputFile.probe(file)
      end

      # Yields the file that keeps what is measured. Nothing is written before there is something to keep.
      def record(head) = yield(@writer = Record::Measurements::Writer.new(record_path, head))

      # Runs an experiment to its end. What ended it early is raised after its report has been shown: it is in @trouble.
      # @raise [Interrupt] before anything was measured
      def measured(experiment, writer)
        report = experiment.call(command: again)
        raise Interrupt unless writer.begun?

        @trouble = experiment.failure
        writer.finish("duration_ns" => report.duration_ns, "readings" => experiment.readings, "losses" => report.losses, "interrupted" => experiment.interrupted)
        report
      end

      def record_path = @record_path ||= @options[:record] || Collect::Place.default.sub(/\.pit\z/, "-#{self.class.verb}.jsonl")

      def publish(text)
        case @options[:out]
        when nil, "-" then @out.puts(text)
        else OutputFile.write(@options[:out]) { |out| out.puts(text) }
        end
        @out.flush
        return if @options[:format] == "json" || @options[:quiet] || !@writer&.begun?

        @err.puts("Measured values in #{shown(record_path)}#{"; pitwall report #{quoted(shown(record_path))} shows all of them" if brief?}")
      end

      # Whether the report leaves something out.
      def brief? = false

      def rendering
        io = @options[:out].nil? || @options[:out] == "-" ? @out : nil
        { width: width(io || File), palette: palette(io || File), unicode: unicode?(io) }
      end

      # A terminal says by its locale whether it shows more than ASCII; files and pipes get all of it.
      def unicode?(io) = !(io && terminal?(io)) || Encoding.find("locale") == Encoding::UTF_8

      # The status that `--fail-if` asks for; 0 without one.
      # @yield whether a condition holds
      def judge_gate(metrics, &block)
        gate = @options[:fail_if] or return Status::OK
        missing = gate.unmeasured(metrics)
        raise CannotMeasure, "--fail-if: no #{missing.first} was measured#{"; add --#{COUNTED_APART[missing.first]}" if COUNTED_APART[missing.first]}" if missing.any?

        failed = gate.failed(&block) or return Status::OK
        @err.puts("pitwall: --fail-if: #{failed.text}")
        Status::WORSE
      end

      def shown(path) = path.delete_prefix("#{Dir.pwd}/")

      # The command line that does it again.
      def again = ["pitwall", self.class.verb, *@argv].map { |word| quoted(word) }.join(" ")

      def quoted(word) = word.match?(PLAIN) ? word : "'#{word.gsub("'") { "'\\''" }}'"

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

      def recorded?(path) = Record::Measurements.file?(path) || (File.file?(path) && File.binread(path, 8) == "PITWALL ")

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
