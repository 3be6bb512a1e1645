# frozen_string_literal: true

module Pitwall
  module Bench
    # Runs a benchmark file and writes lines to the host (bench/script.rb). Tabs separate the fields of a line, and \\
    # \t \n are escaped:
    #
    #   list: case INDEX BLOCK_INDEX BLOCK_NAME LABEL PARAMS FLAGS · note ignored:CALL · end
    #   run:  ready BATCH BATCHES · first NS · warmup ITERATIONS · values METRIC "v v v" · iterations N · batch N ·
    #         note NAME · digest TEXT · done
    #   both: error PHASE CLASS MESSAGE FILE:LINE, then the process ends with status 70. PHASE: load, setup, run or stub
    #
    # Keys of the command line:
    #
    #   require=PATH             a file to load first; may be repeated
    #   codefile=PATH            the file with the code of -e
    #   case=INDEX               the case to measure
    #   block=INDEX:FIRST_CASE   runs the body of this block only; FIRST_CASE is the index of its first case
    #   batch=N                  iterations a batch; 0: find a number
    #   batches=N                timed batches; 0: by their length
    #   warmup=N                 batches of warm-up; 0: until times are steady
    #   turns=FD,FD              runs in turns with other processes (InTurns)
    #   check=1                  digests the value of the first call
    #   stub=Foo#bar             replaces a method by an empty one
    #   iterations_only=BATCHES  runs so many batches and reports no values
    class Child
      FAILED = 70
      ESCAPES = { "\\" => "\\\\", "\t" => "\\t", "\n" => "\\n" }.freeze
      # Lines of a backtrace that belong to the loading of files.
      LOADERS = %r{/(?:rubygems|bundler|bundled_gems|bootsnap)[^:]*:\d+:in [`'](?:Kernel#)?[\w:.#]*require}.freeze
      # Methods of Benchmark that measure by themselves. Pitwall refuses them: method => library.
      REFUSED = { bm: "benchmark", bmbm: "benchmark", benchmark: "benchmark", memory: "benchmark-memory",
                  driver: "benchmark-driver", compare: "benchmark-ips" }.freeze

      def initialize(descriptor, mode, file, *pairs)
        @pid = Process.pid
        @pipe = open_pipe(Integer(descriptor))
        @identity = [@pipe.stat.dev, @pipe.stat.ino]
        @mode = mode
        @file = file
        @keys = Hash.new { |_, key| raise ArgumentError, "#{key}= is missing" }
        @requires = []
        pairs.each do |pair|
          key, value = pair.split("=", 2)
          key == "require" ? @requires << value : @keys[key] = value
        end
        @phase = "load"
        @count = 0 # cases so far
        @forked = false
      end

      # Loads the file, lists or measures, and ends the process.
      def call
        raise ArgumentError, "#{@mode}: list or run" unless %w[list run].include?(@mode)

        prepare_process
        @requires.each { |path| require path }
        @file == "-e" ? run_code : load(@file)
        finish
      rescue SystemExit => error
        @phase == "load" && error.success? ? finish : report(error)
      rescue Exception => error # rubocop:disable Lint/RescueException -- the host gets a line about every exception
        report(error)
      ensure
        report(ThreadError.new("the main thread was ended")) # `finish` and `report` end the process
      end

      # --- called by Bench.run_block ---

      def selected?(block)
        only = @keys.fetch("block", nil)
        only.nil? || only.to_i == block
      end

      def skip(_job)
        Report.new([])
      end

      def run(job)
        first = @keys.key?("block") ? @keys["block"].split(":").last.to_i : @count
        if @mode == "list"
          job.cases.each_with_index { |kase, index| list(kase, job, first - -index) }
          job.ignored.each { |call| write_line("note", "ignored:#{call}") }
        else
          index = number("case") - first
          measure(job.cases[index]) if index >= 0 && index < job.cases.size
        end
        @count = first - -job.cases.size
        Report.new(job.cases.map { |kase| Entry.new(kase.label, 1.0, 1.0, 0.0, 0.0, 1, 1) }, job.compare?)
      end

      # --- called by the hook of Process._fork ---

      def note_fork
        @forked = true
      end

      # Called in the child of a fork, so that the child writes nothing to the host.
      def close_pipe
        @pipe.close
      rescue IOError, SystemCallError
        nil
      end

      private

      # Moves the pipe to a high number, because some cases close "all" descriptors from the lowest on. Programs that a
      # case starts do not inherit it.
      def open_pipe(number)
        inherited = IO.for_fd(number, "wb")
        limit = [Process.getrlimit(Process::RLIMIT_NOFILE).first, 1024].min
        pipe = IO.for_fd(inherited.fcntl(0, [limit - 24, number].max), "wb") # 0 is F_DUPFD
        inherited.close
        pipe.close_on_exec = true
        pipe.sync = true
        pipe
      rescue SystemCallError, ArgumentError
        abort "pitwall: descriptor #{number} is not open for writing: results go there"
      end

      def prepare_process
        ARGV.clear
        $0 = @file
        %w[benchmark/ips.rb pitwall/ips.rb].each do |feature|
          $LOADED_FEATURES << feature.dup unless $LOADED_FEATURES.include?(feature)
        end
        Bench.runner = self
        refuse_other_calls
        watch_forks
        define_data
      end

      def refuse_other_calls
        ::Benchmark.singleton_class.send(:prepend, Module.new do
          REFUSED.each do |name, library|
            define_method(name) do |*|
              raise Misuse, "Benchmark.#{name} (of #{library}) can't be measured by Pitwall: " \
                            "write it with Benchmark.ips or Pitwall.bench"
            end
          end
        end)
      end

      def watch_forks
        return unless Process.respond_to?(:_fork)

        child = self
        Process.singleton_class.send(:prepend, Module.new do
          define_method(:_fork) do
            pid = super()
            pid.zero? ? child.close_pipe : child.note_fork
            pid
          end
        end)
      end

      # `load` does not define DATA.
      def define_data
        return if @file == "-e" || !File.file?(@file)

        marker = /^__END__\r?(?:\n|\z)/n.match(File.binread(@file))
        return unless marker

        data = File.open(@file)
        data.seek(marker.end(0))
        Object.const_set(:DATA, data)
      end

      def run_code
        code = File.read(@keys["codefile"], encoding: Encoding::UTF_8)
        Bench.run_block(Job.new("-e"), proc { |job| job.report("-e", code) })
      end

      def list(kase, job, index)
        params = kase.params.map { |name, value| "#{name}=#{Sweep.show(value)}" }.join(",")
        write_line("case", index, job.index, job.name, kase.label, params, job.flags.join(","))
      end

      def measure(kase)
        @phase = "setup"
        work = Work.new(kase)
        @phase = "stub"
        Stub.empty(@keys["stub"]) if @keys.key?("stub")
        @phase = "run"
        turns = @keys.key?("turns") ? InTurns.new(*@keys["turns"].split(",").map { |number| Integer(number) }) : NoTurns
        check = @keys.fetch("check", "0") == "1"
        measurement = Measurement.new(work, batch: number("batch", 0), batches: number("batches", 0),
                                            warmup: number("warmup", 0), check: check, turns: turns)
        turns.end_turn
        turns.wait_for_turn
        only = number("iterations_only", 0)
        only.zero? ? measure_fully(measurement) : measurement.run_only(only)
        @phase = "setup"
        work.finish
        write(measurement) if only.zero?
        write_line("done")
        end_process(0)
      end

      def measure_fully(measurement)
        measurement.warm_up
        measurement.end_turn
        write_line("ready", measurement.batch, measurement.batches)
        write_line("first", measurement.first_ns)
        write_line("warmup", measurement.warmup)
        measurement.take
        measurement.wait_for_turn
      end

      def write(measurement)
        measurement.values.each { |metric, values| write_line("values", metric, Array(values).join(" ")) }
        write_line("iterations", measurement.batch * measurement.batches)
        write_line("batch", measurement.batch)
        measurement.notes.push(*("forked" if @forked), *("in_turns" if @keys.key?("turns")))
        measurement.notes.each { |note| write_line("note", note) }
        write_line("digest", measurement.digest) if measurement.digest
      end

      def number(key, default = nil)
        Integer(default ? @keys.fetch(key, default) : @keys[key])
      end

      # Called at the end of the file.
      def finish
        if @mode == "run"
          report(Misuse.new("case #{@keys.fetch("case", "?")} was never reached: the file ended after #{@count} " \
                            "cases; it must state the same cases every time"))
        end

        write_line("end")
        end_process(0)
      end

      def report(error)
        kind = error.is_a?(Misuse) ? "Pitwall::UsageError" : error.class
        write_line("error", @phase, kind, message_of(error), location_of(error))
      ensure
        end_process(FAILED)
      end

      def message_of(error)
        case error
        when SystemExit
          ["exit was called (status #{error.status})", *(error.message unless error.message == "exit")].join(": ")
        when SignalException
          "signal #{error.message.empty? || error.message == "Interrupt" ? "SIGINT" : error.message}"
        when NameError
          # `Exception#to_s` is without the source that other libraries add. Before Ruby 3.4 the message has the
          # receiver's `inspect`, which may be long.
          message = Exception.instance_method(:to_s).bind_call(error)
          message.sub(/ for #<([\w:]+).*\z/m, ' for an instance of \1')[0, 2000]
        else error.message.to_s[0, 2000]
        end
      rescue StandardError
        error.class.name # `message` itself raised
      end

      # @return [String] "FILE:LINE" of the topmost line of the backtrace that is the user's
      def location_of(error)
        if error.is_a?(SyntaxError)
          location = error.message[/\A(?:--> )?(.+?:\d+)(?::|$)/, 1]
          return location if location
        end
        lines = error.backtrace.to_a
        line = lines.find { |each| !each.start_with?(__FILE__, "<internal:") && !each.match?(LOADERS) }
        line ? line[/\A.*?:\d+/m] : @file
      end

      def write_line(*fields)
        Process.exit!(1) unless Process.pid == @pid
        raise IOError, "it is another file now" unless [@pipe.stat.dev, @pipe.stat.ino] == @identity

        @pipe.write("#{fields.map { |field| escape(field) }.join("\t")}\n")
      rescue IOError, SystemCallError => error
        unless error.is_a?(Errno::EPIPE)
          STDERR.puts "pitwall: the benchmark closed the descriptor that its results go to (#{error.message})"
        end
        Process.exit!(FAILED)
      end

      def escape(field)
        text = field.to_s
        text = if [Encoding::UTF_8, Encoding::BINARY, Encoding::US_ASCII].include?(text.encoding)
                 text.dup.force_encoding(Encoding::UTF_8)
               else
                 text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace)
               end
        text.scrub("?").gsub(/[\\\t\n]/, ESCAPES)
      end

      # Ends the process without the file's at_exit handlers. They are not part of the measurement, and a forked child
      # may have run them already.
      def end_process(status)
        [$stdout, $stderr, STDOUT, STDERR].each do |stream|
          stream.flush
        rescue StandardError
          nil
        end
      ensure
        Process.exit!(status)
      end
    end
  end
end

Pitwall::Bench::Child.new(*ARGV).call if $0 == __FILE__
