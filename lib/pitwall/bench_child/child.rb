# frozen_string_literal: true

module Pitwall
  module Bench
    # The other end of the pipe. It answers in lines of fields separated by tabs, with \\ \t \n escaped:
    #
    #   list: case INDEX BLOCK_INDEX BLOCK_NAME LABEL PARAMS FLAGS · note ignored:CALL · end
    #   run:  ready BATCH BATCHES · first NS · warmup ITERATIONS · values METRIC "v v v" · iterations N · batch N · note NAME ·
    #         digest TEXT · done
    #   error PHASE CLASS MESSAGE FILE:LINE, then the process ends with status 70; PHASE is load, setup, run or stub
    #
    # Keys: require=PATH (may be repeated), codefile=PATH (of -e), case=INDEX, block=BLOCK_INDEX:INDEX_OF_ITS_FIRST_CASE (bodies of
    # other blocks are not run), batch=N, batches=N, warmup=N (each 0 to find it), turns=FD,FD (see InTurns), check=1, stub=Foo#bar, iterations_only=BATCHES.
    class Child
      FAILED = 70
      ESCAPES = { "\\" => "\\\\", "\t" => "\\t", "\n" => "\\n" }.freeze
      # Lines of a backtrace that only say how a file is loaded.
      LOADERS = %r{/(?:rubygems|bundler|bundled_gems|bootsnap)[^:]*:\d+:in [`'](?:Kernel#)?[\w:.#]*require}.freeze
      # Calls that measure by themselves, in ways that can't be taken over.
      REFUSED = { bm: "benchmark", bmbm: "benchmark", benchmark: "benchmark", memory: "benchmark-memory", driver: "benchmark-driver",
                  compare: "benchmark-ips" }.freeze

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
        @count = 0
        @forked = false
      end

      # Loads the file, lists or measures, and ends the process.
      def go
        raise ArgumentError, "#{@mode}: list or run" unless %w[list run].include?(@mode)

        take_over
        @requires.each { |path| require path }
        @file == "-e" ? open_code : load(@file)
        finish
      rescue SystemExit => error
        @phase == "load" && error.success? ? finish : report(error)
      rescue Exception => error # rubocop:disable Lint/RescueException -- whatever it is, it is said in a line
        report(error)
      ensure
        report(ThreadError.new("the main thread was ended")) # nobody comes here otherwise
      end

      # --- what Bench.open asks ---

      def wants?(block)
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
          job.ignored.each { |call| say("note", "ignored:#{call}") }
        else
          wanted = number("case") - first
          measure(job.cases[wanted]) if wanted >= 0 && wanted < job.cases.size
        end
        @count = first - -job.cases.size
        Report.new(job.cases.map { |kase| Entry.new(kase.label, 1.0, 1.0, 0.0, 0.0, 1, 1) }, job.compare?)
      end

      # --- what happens to the process meanwhile ---

      def forked
        @forked = true
      end

      # In the child of a fork: nothing of it is ever to be written.
      def disown
        @pipe.close
      rescue IOError, SystemCallError
        nil
      end

      private

      # Away from the low numbers, which cases that close "all" descriptors go through, and not for the programs that they start.
      def open_pipe(number)
        given = IO.for_fd(number, "wb")
        most = [Process.getrlimit(Process::RLIMIT_NOFILE).first, 1024].min
        pipe = IO.for_fd(given.fcntl(0, [most - 24, number].max), "wb") # 0 is F_DUPFD
        given.close
        pipe.close_on_exec = true
        pipe.sync = true
        pipe
      rescue SystemCallError, ArgumentError
        abort "pitwall: descriptor #{number} is not open for writing: answers go there"
      end

      def take_over
        ARGV.clear
        $0 = @file
        %w[benchmark/ips.rb pitwall/ips.rb].each { |feature| $LOADED_FEATURES << feature.dup unless $LOADED_FEATURES.include?(feature) }
        Bench.runner = self
        refuse_others
        watch_forks
        keep_data
      end

      def refuse_others
        ::Benchmark.singleton_class.send(:prepend, Module.new do
          REFUSED.each do |name, peer|
            define_method(name) do |*|
              raise Misuse, "Benchmark.#{name} (of #{peer}) can't be taken over: write it with Benchmark.ips or Pitwall.bench"
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
            pid.zero? ? child.disown : child.forked
            pid
          end
        end)
      end

      # `load` gives no DATA.
      def keep_data
        return if @file == "-e" || !File.file?(@file)

        place = /^__END__\r?(?:\n|\z)/n.match(File.binread(@file))
        return unless place

        data = File.open(@file)
        data.seek(place.end(0))
        Object.const_set(:DATA, data)
      end

      def open_code
        code = File.read(@keys["codefile"], encoding: Encoding::UTF_8)
        Bench.open(Job.new("-e"), proc { |job| job.report("-e", code) })
      end

      def list(kase, job, index)
        params = kase.params.map { |name, value| "#{name}=#{Sweep.show(value)}" }.join(",")
        say("case", index, job.index, job.name, kase.label, params, job.flags.join(","))
      end

      def measure(kase)
        @phase = "setup"
        work = Work.new(kase)
        @phase = "stub"
        Stub.empty(@keys["stub"]) if @keys.key?("stub")
        @phase = "run"
        turns = @keys.key?("turns") ? InTurns.new(*@keys["turns"].split(",").map { |number| Integer(number) }) : NoTurns
        measurement = Measurement.new(work, batch: number("batch", 0), batches: number("batches", 0), warmup: number("warmup", 0),
                                            check: @keys.fetch("check", "0") == "1", turns: turns)
        turns.pass
        turns.await
        only = number("iterations_only", 0)
        only.zero? ? measure_fully(measurement) : measurement.run_only(only)
        @phase = "setup"
        work.finish
        write(measurement) if only.zero?
        say("done")
        leave(0)
      end

      def measure_fully(measurement)
        measurement.warm_up
        measurement.turn_over
        say("ready", measurement.batch, measurement.batches)
        say("first", measurement.first_ns)
        say("warmup", measurement.warmup)
        measurement.take
        measurement.last_turn
      end

      def write(measurement)
        measurement.values.each { |metric, values| say("values", metric, Array(values).join(" ")) }
        say("iterations", measurement.batch * measurement.batches)
        say("batch", measurement.batch)
        measurement.notes.push(*("forked" if @forked), *("in_turns" if @keys.key?("turns"))).each { |note| say("note", note) }
        say("digest", measurement.digest) if measurement.digest
      end

      def number(key, default = nil)
        Integer(default ? @keys.fetch(key, default) : @keys[key])
      end

      # The file has come to its end.
      def finish
        if @mode == "run"
          report(Misuse.new("case #{@keys.fetch("case", "?")} was never reached: the file ended after #{@count} cases; " \
                            "it must state the same ones each time"))
        end

        say("end")
        leave(0)
      end

      def report(error)
        say("error", @phase, error.is_a?(Misuse) ? "Pitwall::UsageError" : error.class, message_of(error), place_of(error))
      ensure
        leave(FAILED)
      end

      def message_of(error)
        case error
        when SystemExit then ["exit was called (status #{error.status})", *(error.message unless error.message == "exit")].join(": ")
        when SignalException then "signal #{error.message.empty? || error.message == "Interrupt" ? "SIGINT" : error.message}"
        # Without what other libraries add of the source; what Ruby before 3.4 shows of the receiver may be anything, and long.
        when NameError then Exception.instance_method(:to_s).bind_call(error).sub(/ for #<([\w:]+).*\z/m, ' for an instance of \1')[0, 2000]
        else error.message.to_s[0, 2000]
        end
      rescue StandardError
        error.class.name # an error whose message raises
      end

      # The topmost line of the user's.
      def place_of(error)
        if error.is_a?(SyntaxError)
          place = error.message[/\A(?:--> )?(.+?:\d+)(?::|$)/, 1]
          return place if place
        end
        ours = error.backtrace.to_a.reject { |line| line.start_with?(__FILE__, "<internal:") || line.match?(LOADERS) }
        ours.first ? ours.first[/\A.*?:\d+/m] : @file
      end

      def say(*fields)
        Process.exit!(1) unless Process.pid == @pid
        raise IOError, "it is another file now" unless [@pipe.stat.dev, @pipe.stat.ino] == @identity

        @pipe.write("#{fields.map { |field| escape(field) }.join("\t")}\n")
      rescue IOError, SystemCallError => error
        STDERR.puts "pitwall: the benchmark closed the descriptor that its results go to (#{error.message})" unless error.is_a?(Errno::EPIPE)
        Process.exit!(FAILED)
      end

      def escape(field)
        text = field.to_s
        text = if [Encoding::UTF_8, Encoding::BINARY, Encoding::US_ASCII].include?(text.encoding) then text.dup.force_encoding(Encoding::UTF_8)
               else text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace)
               end
        text.scrub("?").gsub(/[\\\t\n]/, ESCAPES)
      end

      # at_exit handlers of the file are not run: what they would do is not what is measured, and a child may already have run them.
      def leave(status)
        [$stdout, $stderr, STDOUT, STDERR].each do |stream|
          stream.flush
        rescue StandardError
          nil
        end
        Session.stop if defined?(Session) && Session.recording? # `exit!` would lose the last second of a profile
      ensure
        Process.exit!(status)
      end
    end
  end
end

Pitwall::Bench::Child.new(*ARGV).go if $0 == __FILE__
