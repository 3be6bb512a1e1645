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
    # The host's end of the talk with a benchmark's process (bench_child/child.rb, where the lines are explained).
    #
    # A script is listed once; each of its cases is calibrated once, by one process that isn't counted, and then
    # measured by as many processes as anybody asks samples for, all with the same number of iterations.
    class Script
      # How a case is run: iterations a batch, batches, batches of warm-up; `process_ns` is what one process takes in all.
      Calibration = Struct.new(:batch, :batches, :warmup, :process_ns, :iteration_ns, keyword_init: true)

      # Per iteration these are exact fractions, and an integer stays one.
      PER_ITERATION = (Record::METRICS.keys - %w[max_rss]).freeze
      # What the child calls a benchmark that asks for what isn't there; its message says all.
      MISUSE = "Pitwall::UsageError"
      private_constant :PER_ITERATION, :MISUSE

      # @return [Subject]
      attr_reader :subject

      #: (Subject, ?cpu: Integer, ?timeout: Numeric, ?warmup: Integer?, ?batches: Integer?, ?check: bool, ?output: IO | String) -> void
      # @param warmup [Integer, nil] batches of warm-up; nil: until it is steady
      # @param batches [Integer, nil] timed batches of a process; nil: by their length
      # @param check [Boolean] whether to digest what the case returns
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
      # @raise [Failed] it can't be loaded, or has none
      #: () -> Array[Record::Case]
      def cases
        @cases ||= begin
          found = talk("list", {}).filter_map { |kind, *fields| listed(*fields) if kind == "case" }
          raise Failed, "#{place}: no benchmark in it: it takes Benchmark.ips { |x| x.report(…) { … } } or Pitwall.bench" if found.empty?

          NameList.new.tell_apart(found)
        end
      end

      # Runs a case once to learn how long it takes.
      # @raise [Failed]
      #: (Record::Case) -> Calibration
      def calibrate(kase)
        started = clock_ns
        lines = run(kase, batch: 0, batches: @batches || 0, warmup: @warmup || 0)
        iterations = field(lines, "iterations").to_i
        wall = values(lines)["wall"] or raise Failed, "#{place(kase)}: its process reported no times"
        Calibration.new(batch: field(lines, "batch").to_i, batches: wall.size, warmup: @warmup || 0, process_ns: clock_ns - started,
                        iteration_ns: wall.sum.fdiv([iterations, 1].max))
      end

      # Measures a case in a fresh process.
      # @param seat [Turns::Seat, nil] of a process that runs in turns with others
      # @raise [Failed]
      #: (Record::Case, Calibration, block: Integer, order: Integer, ?seat: Turns::Seat?) -> Record::Sample
      def sample(kase, calibration, block:, order:, seat: nil)
        lines = run(kase, seat: seat, batch: calibration.batch, batches: calibration.batches, warmup: calibration.warmup)
        iterations = field(lines, "iterations").to_i
        Record::Sample.new(side: subject.name, name: kase.name, block: block, order: order, iterations: iterations,
                           values: per_iteration(values(lines), field(lines, "batch").to_i, iterations),
                           first_ns: field(lines, "first")&.to_i, warmup: field(lines, "warmup").to_i,
                           digest: field(lines, "digest"), notes: lines.filter_map { |kind, note| note.to_sym if kind == "note" })
      end

      # The command and environment that run so many batches of a case and report nothing: what a profile is taken of.
      #: (Record::Case, Calibration) -> [Array[String], Hash[String, String?]]
      def plain_run(kase, calibration)
        settings = { case: kase.index, batch: calibration.batch, iterations_only: [calibration.batches, 1].max }
        settings[:stub] = subject.stub if subject.stub
        [command("run", **settings), subject.env]
      end

      # Removes what was written for the processes.
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
        lines = talk("run", settings, kase, seat)
        lines.any? { |kind,| kind == "done" } ? lines : raise(Failed, "#{place(kase)}: its process ended before it had reported")
      end

      def talk(mode, settings, kase = nil, seat = nil)
        finished = Execution.new(command(mode, **settings), env: subject.env, dir: subject.dir, cpu: mode == "list" ? -1 : @cpu,
                                                            timeout: @timeout * (seat&.among || 1), output: @output, seat: seat).call
        lines = finished.lines.map { |line| line.split("\t", -1).map { |field| unescape(field) } }
        complain(finished, lines, kase) unless finished.success?
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

      # All sides' names are equally long, as all else that they are started with.
      def code_file
        @code_file ||= File.join(Dir.tmpdir, format("pitwall-%08d-%08x.rb", Process.pid, Random.new_seed & 0xffff_ffff)).tap do |path|
          File.open(path, File::WRONLY | File::CREAT | File::EXCL, 0o600) { |file| file.write(subject.code) }
        end
      end

      def complain(finished, lines, kase)
        kind, phase, name, message, at = lines.find { |first,| first == "error" }
        if kind
          what = { "load" => "cannot load it:", "setup" => "its setup raised", "stub" => "the stub raised" }.fetch(phase, "it raised")
          said = name == MISUSE ? first_line(message) : "#{what} #{name}: #{first_line(message)}"
          raise Failed, "#{place(kase)}: #{said}#{" (#{at})" unless at.to_s.empty?}"
        end
        if finished.timed_out
          raise Failed, "#{place(kase)}: did not end within #{format("%g", @timeout)} s; --timeout SECONDS allows more"
        end
        raise Failed, "#{subject.ruby.first}: cannot be run: #{SystemCallError.new(finished.error).message}" if finished.error

        how = finished.signal ? "was killed by SIG#{Signal.signame(finished.signal)}" : "ended with status #{finished.exit}"
        raise Failed, "#{place(kase)}: its process #{how}#{": #{first_line(finished.errors)}" unless finished.errors.strip.empty?}"
      end

      def listed(index, block, block_name, name, params, flags)
        pairs = params.to_s.split(",").to_h { |pair| pair.split("=", 2) }
        point = pairs.map { |pair| pair.join("=") }.join(" ") # the end of the name: "join n=10"
        Record::Case.new(index: index.to_i, block: block.to_i, block_name: block_name, name: subject.code ? "-e" : name,
                 label: name.delete_suffix(point).rstrip, params: pairs, flags: flags.to_s.split(","))
      end

      def values(lines)
        lines.each_with_object({}) { |(kind, metric, list), all| all[metric] = list.split.map { |text| text.include?(".") ? text.to_f : text.to_i } if kind == "values" }
      end

      # Totals of a batch, and of all batches where there is only one value.
      def per_iteration(values, batch, iterations)
        values.to_h do |metric, totals|
          by = totals.size == 1 ? iterations : batch
          [metric, PER_ITERATION.include?(metric) && by.positive? ? totals.map { |total| divide(total, by) } : totals]
        end
      end

      def divide(total, by) = total.is_a?(Integer) && (total % by).zero? ? total / by : total.fdiv(by)

      def field(lines, kind) = lines.find { |first,| first == kind }&.at(1)

      def unescape(text) = text.gsub(/\\(.)/) { { "t" => "\t", "n" => "\n" }.fetch(Regexp.last_match(1), Regexp.last_match(1)) }

      def place(kase = nil)
        file = subject.script ? File.basename(subject.script) : "-e"
        side = ["", file].include?(subject.name.to_s) ? "" : " (#{subject.name})"
        "#{file}#{side}#{", case #{kase.name}" if kase && !["-e", subject.name].include?(kase.name)}"
      end

      def first_line(text) = text.to_s.strip.lines.first.to_s.chomp

      def clock_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    end
  end
end
