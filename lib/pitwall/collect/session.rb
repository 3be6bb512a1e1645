# frozen_string_literal: true

require_relative "../compat"
require_relative "cores"
require_relative "json"
require_relative "header"
require_relative "labels"
require_relative "place"
require_relative "queries"
require_relative "tests"
require_relative "window"

module Pitwall
  module Collect
    # Starts and stops the sampler in the running process, and keeps it recording across forks.
    # Uses no Mutex (it may be called in a trap) and nothing outside core Ruby.
    # @api private
    module Session
      DEFAULTS = { interval_ns: 1_000_000, mode: "auto", signal: "URG", flush_ns: 1_000_000_000, keep_argv: false, gc: true, collectors: {}.freeze }.freeze
      INTERVALS = (100_000..1_000_000_000)
      # auto: outside where it works and a core is spare for it, else signal. none: no samples, only what other collectors see.
      MODES = %w[auto outside signal safepoint none].freeze
      # Signals that are ignored by default: one that arrives after the recording, or after an exec, harms nobody.
      SIGNALS = %w[URG WINCH].freeze
      # Whose calls are nobody's business.
      HOME = File.expand_path("..", __dir__)

      class << self
        # The path being written, nil when not recording.
        attr_reader :path
        # Which part of the command's time is recorded; nil: all of it.
        # @return [Window, nil]
        attr_reader :window

        #: () -> bool
        def recording?
          defined?(Native) && Native.recording?
        end

        # Is the whole process recorded by the command?
        #: () -> bool
        def whole_command?
          !@parts.nil?
        end

        # @raise [StateError] already recording
        # @raise [UsageError] a setting out of range, a path that can't be written
        # @raise [CannotMeasure] the signal is taken, not in the main Ractor
        # mode_reason: why it is that mode, where nobody asked for it
        #: (path: String, **untyped) -> void
        def start(path:, append: false, mode_reason: nil, **settings)
          raise CannotMeasure, "start the recording from the main Ractor" unless Compat.main_ractor?

          Pitwall.load_native!
          raise StateError, "already recording to #{@path}: stop that first" if recording? || @paused

          settings = { mode: "signal" }.merge(settings) if settings[:signal] # who names one wants to be sampled by it
          settings = check(DEFAULTS.merge(settings))
          Compat.guard_ractors
          @settings = settings
          @mode_reason = mode_reason
          stop_at_exit
          Native.watch_endings
          Queries.watch # before, as what we do after it would be recorded
          begin_native(path, append, settings)
        end

        # Ends the recording. Returns the counters (STAT of doc/record-format.md).
        # @raise [StateError] not recording, or another thread is starting or stopping it
        # @raise [CannotMeasure] not in the main Ractor
        #: (?reason: String) -> Hash[Symbol, Integer]
        def stop(reason: "stop")
          if @paused
            @paused = false
            return @last_counters
          end
          raise StateError, "not recording: start a recording first" unless recording?

          end_native(reason)
        end

        # Ends the segment; time until resume is not recorded.
        # @raise [StateError] not recording
        def pause
          raise StateError, "not recording: nothing to pause" unless recording?

          @last_counters = end_native("pause")
          @paused = true
          nil
        end

        # Goes on in the same file with a new segment.
        # @raise [StateError] not paused
        def resume
          raise StateError, "not paused" unless @paused

          @paused = false
          # A child forked during the pause goes on in a file of its own.
          Process.pid == @pid ? begin_native(@path, true, @settings) : begin_native(own_path, false, @settings)
          nil
        end

        def paused? = !!@paused

        # Called by the extension after an exec that failed: the recording was completed before.
        #: () -> void
        def go_on
          begin_native(@path, true, @settings)
        rescue StandardError => error # no descriptor, no memory: the program goes on without us
          tell("the recording ended at an exec that failed: #{error.message}")
        end

        # In a process that the command started: PITWALL_PARTS is the folder, PITWALL_OPTIONS the settings ("k=v;k=v").
        #: (Hash[String, String]) -> void
        def start_from_env(env)
          return if recording?

          @parts = env.fetch("PITWALL_PARTS")
          options = env.fetch("PITWALL_OPTIONS", "")
          end_strace if options.include?("syscalls.start=1")
          @window = Window.of(options)
          return if @window&.over?

          Tests.watch # before, as what we do after it would be recorded
          begin_by_window { start(path: part_path, **parse(options)) }
        end

        # Who says where forked children record, and when (Continuous); nil: each goes on beside its parent.
        attr_writer :conductor

        # Called by the extension in a forked child, at its first safepoint.
        def forked
          @paused = false
          return @conductor.forked if @conductor
          return if @window&.over?

          begin_native(own_path, false, @settings)
          @window&.watch
        rescue StandardError => error
          tell("a forked child was not recorded: #{error.message}")
        end

        # To the command, which shows it when the program has ended. It may have gone, with its folder, or the disk is full.
        def tell(message)
          @parts && File.open(File.join(@parts, "messages"), "a", 0o600) { |file| file.syswrite("#{message}\n") }
        rescue SystemCallError
          nil
        end

        private

        # What the program does when it ends is recorded, too: our block is the first of them, which runs last.
        def begin_by_window(&start)
          return start.call unless @window

          stop_at_exit
          @window.keep(&start)
        end

        def check(settings)
          unknown = settings.keys - DEFAULTS.keys
          raise UsageError, "unknown setting #{unknown.first}: known are #{DEFAULTS.keys.join(", ")}" unless unknown.empty?

          settings = settings.merge(mode: settings[:mode].to_s, signal: settings[:signal].to_s.sub(/\ASIG/, "").upcase)
          check_numbers(settings)
          raise UsageError, "mode #{settings[:mode].inspect}: choose #{MODES.join(" or ")}" unless MODES.include?(settings[:mode])
          unless SIGNALS.include?(settings[:signal])
            raise UsageError, "signal #{settings[:signal].inspect}: choose #{SIGNALS.join(" or ")} (signals that are ignored by default), or mode safepoint"
          end
          settings
        end

        def check_numbers(settings)
          interval, flush = settings.values_at(:interval_ns, :flush_ns)
          unless interval.is_a?(Integer) && INTERVALS.cover?(interval)
            raise UsageError, "interval_ns #{interval.inspect}: choose 100_000 (100 us) to 1_000_000_000 (1 s)"
          end
          return if flush.is_a?(Integer) && flush.between?(10_000_000, 60_000_000_000)

          raise UsageError, "flush_ns #{flush.inspect}: choose 10_000_000 (10 ms) to 60_000_000_000 (1 min)"
        end

        def begin_native(path, append, settings)
          path = File.expand_path(path)
          refuse_foreign_file(path) unless append
          mode, why = possible_mode(settings[:mode])
          notes = settings[:mode] == "outside" && mode != "outside" ? ["mode outside does not work here (#{Native.outside_refusal}): signals were used"] : []
          gc = settings[:gc] || mode == "outside" || settings[:collectors].key?("allocations") # an object's age is in collections
          notes << "garbage collection is not told apart (gc: false): its time is with the code that ran" unless gc
          settings = settings.merge(unit_ns: unit_for(settings[:interval_ns]), mode: mode)
          head = Header.build(settings: settings, mode_reason: @mode_reason || why, thread_states: Native.thread_states?(settings[:mode]), walk: Native.walk, notes: notes)
          require_relative "holders" if settings[:collectors].dig("allocations", "holders") == "1"
          labelled = Labels.prepare # before, as what we do after it would be recorded
          refusal = Native.start(path, append, head, settings[:interval_ns], settings[:unit_ns], settings[:flush_ns],
                                 settings[:mode], Signal.list.fetch(settings[:signal]), Compat.other_threads, settings[:collectors].transform_values { |options| options.merge("home" => HOME) })
          raise explain(refusal, path, settings) if refusal

          Native.stop_gc_frames unless gc # outside needs to be told
          @path = path
          @pid = Process.pid
          Labels.resume(labelled) if labelled
        end

        def end_native(reason)
          counters = Native.stop(reason) # before this nothing is called that a trace would tell of
          return counters if counters
          raise CannotMeasure, "stop the recording in the main Ractor" if counters == false

          raise StateError, "another thread is starting or stopping the recording"
        end

        # What will be used, and why: stacks are read from outside where that was asked for or, unasked, a core is spare.
        def possible_mode(mode)
          return [mode, "asked for"] unless %w[auto outside].include?(mode)

          refusal = unasked_refusal if mode == "auto"
          refusal ||= Native.outside_refusal
          return ["outside", mode == "auto" ? "a core is spare" : "asked for"] unless refusal

          ["signal", mode == "auto" ? refusal : "outside was asked for"]
        end

        # Why stacks are not read from outside unless someone asks for it.
        def unasked_refusal
          return "this Ruby gives no thread events (3.2 and newer do)" unless Native.thread_states?("outside") # what a late look then finds says little

          Cores.new(Native.allowed_cores).refusal
        end

        # A slip of the hand must not cost a file that is something else.
        def refuse_foreign_file(path)
          return unless File.file?(path) && File.size?(path) && File.binread(path, 8) != "PITWALL "

          raise UsageError, "#{path} exists and is not a recording: name another file"
        rescue SystemCallError
          nil # opening it will say why
        end

        # The largest power of two that still gives a sample 12 bits: its time then takes two bytes.
        def unit_for(interval_ns)
          unit = 1
          unit *= 2 while interval_ns / unit > 8191
          unit
        end

        def explain(refusal, path, settings)
          if refusal == "signal taken"
            other = (SIGNALS - [settings[:signal]]).first
            return CannotMeasure.new("signal #{settings[:signal]} is already handled by the program: " \
                                     "choose --signal #{other} or --mode safepoint")
          end
          return UsageError.new("#{path}: #{refusal}") if refusal.start_with?("cannot write")

          CannotMeasure.new(refusal)
        end

        def parse(options)
          pairs = options.split(";").to_h { |pair| pair.split("=", 2) }
          settings = {}
          %w[interval_ns flush_ns].each { |key| settings[key.to_sym] = Integer(pairs[key]) if pairs[key] }
          %w[mode signal].each { |key| settings[key.to_sym] = pairs[key] if pairs[key] }
          settings[:keep_argv] = pairs["keep_argv"] == "1"
          settings[:collectors] = collectors(pairs)
          settings
        end

        # "trace.cpu=1" is the option `cpu` of the collector `trace`.
        def collectors(pairs)
          pairs.each_with_object({}) do |(key, value), found|
            name, option = key.split(".", 2)
            (found[name] ||= {})[option] = value if option
          end
        end

        # The command had strace look at what comes before us: from here on we see by ourselves.
        def end_strace
          tracer = File.read("/proc/self/status")[/^TracerPid:\s*(\d+)/, 1].to_i
          return if tracer.zero? || File.read("/proc/#{tracer}/comm").strip != "strace"

          Process.kill("TERM", tracer)
          1000.times { File.read("/proc/self/status").match?(/^TracerPid:\s*0$/) ? break : sleep(0.001) }
        rescue SystemCallError
          nil # it has gone by itself
        end

        def part_path
          n = 0
          n += 1 while File.exist?(path = File.join(@parts, "#{Process.pid}-#{n}.pit"))
          path
        end

        # Of a forked child.
        def own_path
          @parts ? part_path : @path.sub(/(\.pit)?\z/) { "-#{Process.pid}#{$1}" }
        end

        def stop_at_exit
          return if @at_exit

          @at_exit = true
          at_exit do
            @at_exit = false # handlers that run after this one may start again
            @window&.give_up
            @conductor&.ending
            100.times { recording? && !Native.stop("stop") ? sleep(0.01) : break } # another thread may be at it
          end
        end
      end
    end
  end

  begin
    Pitwall.load_native!
    # The extension tells a forked child that it is one.
    def Native.forked = Collect::Session.forked
    def Native.go_on = Collect::Session.go_on
  rescue CannotMeasure
    nil # said when a recording is to be started, not to every program that has us in its Gemfile
  end
end
