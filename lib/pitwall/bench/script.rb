# frozen_string_literal: true

require "tmpdir"
require "pitwall/record/sample"
require "pitwall/bench/execution"
require "pitwall/bench/failed"
require "pitwall/bench/name_list"
require "pitwall/bench/subject"
require "pitwall/bench/turns"

module Pitwall
  module Bench
    # A benchmark file as something to measure. Its processes run bench_child/child.rb, which describes the
    # lines that they write.
    #
    # A script is listed once. Each of its cases is calibrated once, by one process that is not counted. After that each
    # sample is measured by one more process, with the same number of iterations.
    class Script
      # batch:        iterations a batch
      # batches:      timed batches
      # warmup:       batches of warm-up; 0: until times are steady
      # process_ns:   the time of one whole process
      # iteration_ns: the time of one iteration
      Calibration = Struct.new(:batch, :batches, :warmup, :process_ns, :iteration_ns, keyword_init: true)

      # Metrics that are divided by the number of iterations. A quotient without remainder stays an Integer.
      PER_ITERATION = (Record::METRICS.keys - %w[max_rss]).freeze
      # The child's name for a mistake in a benchmark file. Its message is complete.
      MISUSE = "Pitwall::UsageError"
      # The beginning of a message, by the phase in the child's error line.
      PHASES = { "load" => "cannot load it:", "setup" => "its setup raised", "stub" => "the stub raised" }.freeze
      private_constant :PER_ITERATION, :MISUSE, :PHASES

      # @return [Subject]
      attr_reader :subject

      # @param cpu [Integer] core to run on; -1: any
      # @param timeout [Numeric] seconds for one process
      # @param warmup [Integer, nil] batches of warm-up; nil: until times are steady
      # @param batches [Integer, nil] timed batches of a process; nil: by their length
      # @param check [Boolean] whether to digest the case's value
      # @param output where the standard output of the processes goes
      #: (Subject, ?cpu: Integer, ?timeout: Numeric, ?warmup: Integer?, ?batches: Integer?, ?check: bool,
      #:   ?output: IO | String) -> void
      def initialize(subject, cpu: -1, timeout: 60, warmup: nil, batches: nil, check: false, output: File::NULL)
        @subject = subject
        @cpu = cpu
        @timeout = timeout
        @warmup = warmup
        @batches = batches
        @check = check
        @output = output
      end

      # The cases of the file, in its order.
      # @raise [Failed] the file can't be loaded, or it has no case
      #: () -> Array[Record::Case]
      def cases
        @cases ||= begin
          found = run_child("list", {}).filter_map { |kind, *fields| build_case(*fields) if kind == "case" }
          if found.empty?
            raise Failed, "#{location}: no benchmark in it: " \
                          "it takes x.report(…) { … } in Benchmark.ips { |x| … } or Pitwall.bench { |x| … }"
          end

          NameList.new.make_unique(found)
        end
      end

      # Runs a case in one process to find out how long it takes.
      # @raise [Failed]
      #: (Record::Case) -> Calibration
      def calibrate(kase)
        started = clock_ns
        lines = run(kase, batch: 0, batches: @batches || 0, warmup: @warmup || 0)
        iterations = field(lines, "iterations").to_i
        wall = values(lines)["wall"] or raise Failed, "#{location(kase)}: its process reported no times"
        Calibration.new(batch: field(lines, "batch").to_i, batches: wall.size, warmup: @warmup || 0,
                        process_ns: clock_ns - started, iteration_ns: wall.sum.fdiv([iterations, 1].max))
      end

      # Measures a case in a fresh process.
      # @param seat [Turns::Seat, nil] for a process that runs in turns with others
      # @raise [Failed]
      #: (Record::Case, Calibration, block: Integer, order: Integer, ?seat: Turns::Seat?) -> Record::Sample
      def sample(kase, calibration, block:, order:, seat: nil)
        lines = run(kase, seat: seat, batch: calibration.batch, batches: calibration.batches,
                          warmup: calibration.warmup)
        iterations = field(lines, "iterations").to_i
        Record::Sample.new(side: subject.name, name: kase.name, block: block, order: order, iterations: iterations,
                           values: per_iteration(values(lines), field(lines, "batch").to_i, iterations),
                           first_ns: field(lines, "first")&.to_i, warmup: field(lines, "warmup").to_i,
                           digest: field(lines, "digest"),
                           notes: lines.filter_map { |kind, note| note.to_sym if kind == "note" })
      end

      # The command and environment of a process that runs the calibration's batches and reports no values. Profilers
      # and counters record this process.
      #: (Record::Case, Calibration) -> [Array[String], Hash[String, String?]]
      def plain_run(kase, calibration)
        settings = { case: kase.index, batch: calibration.batch, iterations_only: [calibration.batches, 1].max }
        settings[:stub] = subject.stub if subject.stub
        [command("run", **settings), subject.env]
      end

      # Removes the file with the code of `-e`.
      #: () -> void
      def close
        File.unlink(@code_file) if @code_file && File.exist?(@code_file)
        @code_file = nil
      end

      private

      def run(kase, seat: nil, **settings)
        settings = settings.merge(case: kase.index)
        settings[:turns] = "#{Turns::TAKE_FD},#{Turns::PASS_FD}" if seat
        settings[:check] = 1 if @check
        settings[:stub] = subject.stub if subject.stub
        lines = run_child("run", settings, kase, seat)
        return lines if lines.any? { |kind,| kind == "done" }

        raise Failed, "#{location(kase)}: its process ended before it had reported"
      end

      # @return [Array<Array<String>>] the child's lines as fields
      def run_child(mode, settings, kase = nil, seat = nil)
        timeout = @timeout * (seat&.among || 1)
        cpu = mode == "list" ? -1 : @cpu
        finished = Execution.new(command(mode, **settings), env: subject.env, dir: subject.dir, cpu: cpu,
                                                            timeout: timeout, output: @output, seat: seat).call
        lines = finished.lines.map { |line| line.split("\t", -1).map { |field| unescape(field) } }
        raise_failure(finished, lines, kase) unless finished.success?
        lines
      end

      def command(mode, **settings)
        words = settings.map { |key, value| "#{key}=#{value}" }
        words.concat(subject.requires.to_a.map { |path| "require=#{path}" })
        words << "codefile=#{code_file}" if subject.code
        [*subject.ruby, child, Execution::REPORT_FD.to_s, mode, subject.script || "-e", *words]
      end

      # pitwall-core has the child's file, as it has all files that are loaded into measured programs.
      def child
        _, path = $LOAD_PATH.resolve_feature_path("pitwall/bench_child/assembled")
        path or raise CannotMeasure, "pitwall/bench_child/assembled.rb, which measures a case, is missing: " \
                                     "run `gem install pitwall-core`, or script/setup in a checkout"
      end

      # The file's name has a fixed length: the length of its arguments can change a process's speed, so the arguments
      # of all sides are equally long.
      def code_file
        @code_file ||= begin
          name = format("pitwall-%08d-%08x.rb", Process.pid, Random.new_seed & 0xffff_ffff)
          path = File.join(Dir.tmpdir, name)
          File.open(path, File::WRONLY | File::CREAT | File::EXCL, 0o600) { |file| file.write(subject.code) }
          path
        end
      end

      def raise_failure(finished, lines, kase)
        raise_error_line(lines.find { |kind,| kind == "error" }, kase)
        if finished.timed_out
          raise Failed.new("#{location(kase)}: did not end within #{format("%g", @timeout)} s",
                           advice: { timeout: nil })
        end
        if finished.error
          raise Failed, "#{subject.ruby.first}: cannot be run: #{SystemCallError.new(finished.error).message}"
        end

        signal = finished.signal
        ending = signal ? "was killed by SIG#{Signal.signame(signal)}" : "ended with status #{finished.exit}"
        line = ": #{first_line(finished.errors)}" unless finished.errors.strip.empty?
        raise Failed, "#{location(kase)}: its process #{ending}#{line}"
      end

      def raise_error_line(line, kase)
        return unless line

        _kind, phase, name, message, at = line
        text = first_line(message)
        text = "#{PHASES.fetch(phase, "it raised")} #{name}: #{text}" unless name == MISUSE
        raise Failed, "#{location(kase)}: #{text}#{" (#{at})" unless at.to_s.empty?}"
      end

      def build_case(index, block, block_name, name, params, flags)
        pairs = params.to_s.split(",").to_h { |pair| pair.split("=", 2) }
        point = pairs.map { |pair| pair.join("=") }.join(" ") # the end of the name "join n=10"
        Record::Case.new(index: index.to_i, block: block.to_i, block_name: block_name,
                         name: subject.code ? "-e" : name, label: name.delete_suffix(point).rstrip,
                         params: pairs, flags: flags.to_s.split(","))
      end

      # @return [Hash<String, Array<Numeric>>] metric => values
      def values(lines)
        lines.select { |kind,| kind == "values" }.to_h do |_kind, metric, list|
          [metric, list.split.map { |text| text.include?(".") ? text.to_f : text.to_i }]
        end
      end

      # Each value is the total of a batch. A single value is the total of all batches.
      def per_iteration(values, batch, iterations)
        values.to_h do |metric, totals|
          by = totals.size == 1 ? iterations : batch
          divisible = PER_ITERATION.include?(metric) && by.positive?
          [metric, divisible ? totals.map { |total| divide(total, by) } : totals]
        end
      end

      def divide(total, by) = total.is_a?(Integer) && (total % by).zero? ? total / by : total.fdiv(by)

      def field(lines, kind) = lines.find { |first,| first == kind }&.at(1)

      def unescape(text)
        text.gsub(/\\(.)/) { { "t" => "\t", "n" => "\n" }.fetch(Regexp.last_match(1), Regexp.last_match(1)) }
      end

      # "join.rb (main), case join n=10"
      def location(kase = nil)
        file = subject.script ? File.basename(subject.script) : "-e"
        side = ["", file].include?(subject.name.to_s) ? "" : " (#{subject.name})"
        "#{file}#{side}#{", case #{kase.name}" if kase && !["-e", subject.name].include?(kase.name)}"
      end

      def first_line(text) = text.to_s.strip.lines.first.to_s.chomp

      def clock_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    end
  end
end
