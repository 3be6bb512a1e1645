# frozen_string_literal: true

require_relative "../compat"
require_relative "cores"
require_relative "json"
require_relative "header"
require_relative "labels"
require_relative "place"
require_relative "queries"
require_relative "tests"
require_relative "vm_counters"
require_relative "window"

module Pitwall
  module Collect
    # Starts and stops the recording of the running process, and goes on recording in forked children. It uses core Ruby
    # only, and no Mutex, because it may be called in a trap.
    # @api private
    module Session
      # perf: whether perf records this process as well. The HEAD then says where the interpreter's loop is.
      DEFAULTS = { interval_ns: 1_000_000, mode: "auto", signal: "URG", flush_ns: 1_000_000_000, keep_argv: false,
                   gc: true, native: false, perf: false, collectors: {}.freeze }.freeze
      INTERVALS = (100_000..1_000_000_000)
      # auto: mode outside if it works and a core is spare for it, otherwise signal.
      # none: no samples, other collectors only.
      MODES = %w[auto outside signal safepoint none].freeze
      # Signals that are ignored by default. One that arrives after the recording, or after an exec, does no harm.
      SIGNALS = %w[URG WINCH].freeze
      # Pitwall's own folder, whose calls collectors leave out.
      HOME = File.expand_path("..", __dir__)

      # All set here, so that no later assignment makes a new shape of this object: the collector of caches counts them.
      @path = @pid = @window = @parts = @settings = @mode_reason = nil
      @paused = @conductor = @last_counters = @at_exit = nil

      class << self
        # @return [String, nil] the path being written; nil before the first recording
        attr_reader :path
        # @return [Window, nil] the part of the command's time that is recorded; nil: all of it
        attr_reader :window

        #: () -> bool
        def recording?
          defined?(Native) && Native.recording?
        end

        # Whether a command (`pitwall profile -- …`) records this process.
        #: () -> bool
        def whole_command?
          !@parts.nil?
        end

        # @param path [String] the recording
        # @param append [Boolean] whether to add a segment to an existing recording
        # @param mode_reason [String, nil] why the mode was chosen, if the user did not choose it
        # @raise [StateError] already recording
        # @raise [UsageError] a setting out of range, a path that can't be written
        # @raise [CannotMeasure] the program handles the signal, or this is not the main Ractor
        #: (path: String, ?append: bool, ?mode_reason: String?, **untyped) -> void
        def start(path:, append: false, mode_reason: nil, **settings)
          raise CannotMeasure, "start the recording from the main Ractor" unless Compat.main_ractor?

          Pitwall.load_native!
          raise StateError, "already recording to #{@path}: stop that first" if recording? || @paused

          settings = { mode: "signal" }.merge(settings) if settings[:signal] # a signal without a mode means mode signal
          settings = check(DEFAULTS.merge(settings))
          Compat.guard_ractors
          @settings = settings
          @mode_reason = mode_reason
          stop_at_exit
          Native.watch_endings
          Queries.watch # before the start: its own calls must not be recorded
          watch_boot if settings[:collectors].key?("boot")
          begin_native(path, append, settings)
        end

        # Ends the recording.
        # @return [Hash] the counters (STAT of doc/record-format.md)
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

        # Ends the segment. The time until `resume` is not recorded.
        # @raise [StateError] not recording
        def pause
          raise StateError, "not recording: nothing to pause" unless recording?

          @last_counters = end_native("pause")
          @paused = true
          nil
        end

        # Begins a new segment in the same file.
        # @raise [StateError] not paused
        def resume
          raise StateError, "not paused" unless @paused

          @paused = false
          # A child that was forked during the pause writes to a file of its own.
          Process.pid == @pid ? begin_native(@path, true, @settings) : begin_native(child_path, false, @settings)
          nil
        end

        def paused? = !!@paused

        # Called by the extension after an exec that failed. The recording was completed before the exec.
        #: () -> void
        def go_on
          begin_native(@path, true, @settings)
        rescue StandardError => error # no descriptor or no memory: the program goes on without a recording
          add_message("the recording ended at an exec that failed: #{error.message}")
        end

        # Starts in a process of a recorded command. PITWALL_PARTS is the folder,
        # PITWALL_OPTIONS the settings ("k=v;k=v").
        # @param began_ns [Integer, nil] when Pitwall's code began to be loaded
        #: (Hash[String, String], ?Integer?) -> void
        def start_from_env(env, began_ns = nil)
          return if recording?

          @parts = env.fetch("PITWALL_PARTS")
          options = env.fetch("PITWALL_OPTIONS", "")
          end_strace if options.include?("syscalls.start=1")
          @window = Window.of(options)
          return if @window&.over?

          Tests.watch # before the start: its own calls must not be recorded
          settings = parse(options)
          begin_by_window { start_first(settings, @window&.delays? ? nil : began_ns) }
        end

        # The object that decides where and when forked children record (Continuous). nil: each child writes a file
        # beside its parent's.
        attr_writer :conductor

        # Called by the extension in a forked child, at its first safepoint.
        def forked
          @paused = false
          return @conductor.forked if @conductor
          return if @window&.over?

          begin_native(child_path, false, @settings)
          @window&.watch
        rescue StandardError => error
          add_message("a forked child was not recorded: #{error.message}")
        end

        # Adds a message for the user. The command shows it when the program has ended.
        def add_message(message)
          @parts && File.open(File.join(@parts, "messages"), "a", 0o600) { |file| file.syswrite("#{message}\n") }
        rescue SystemCallError
          nil # the command has ended and removed its folder, or the disk is full
        end

        private

        # Only this start followed Pitwall's own: not that in a forked child, after a failed exec or a pause.
        def start_first(settings, began_ns)
          boot = settings[:collectors]["boot"]
          boot&.store("began_ns", began_ns.to_s) if began_ns
          start(path: part_path, **settings)
        ensure
          boot&.delete("began_ns")
        end

        # The program's at_exit handlers are recorded as well: Pitwall's handler is registered first, so it runs last.
        def begin_by_window(&start)
          return start.call unless @window

          stop_at_exit
          @window.keep(&start)
        end

        def check(settings)
          unknown = settings.keys - DEFAULTS.keys
          unless unknown.empty?
            raise UsageError, "unknown setting #{unknown.first}: known are #{DEFAULTS.keys.join(", ")}"
          end

          settings = settings.merge(mode: settings[:mode].to_s, signal: settings[:signal].to_s.sub(/\ASIG/, "").upcase)
          check_numbers(settings)
          unless MODES.include?(settings[:mode])
            raise UsageError, "mode #{settings[:mode].inspect}: choose #{MODES.join(" or ")}"
          end
          check_native(settings)
          unless SIGNALS.include?(settings[:signal])
            raise UsageError, "signal #{settings[:signal].inspect}: choose #{SIGNALS.join(" or ")} " \
                              "(signals that are ignored by default), or mode safepoint"
          end
          settings
        end

        def check_native(settings)
          unless [true, false].include?(settings[:native])
            raise UsageError, "native #{settings[:native].inspect}: choose true or false"
          end
          return if !settings[:native] || %w[auto signal].include?(settings[:mode])

          raise UsageError, "native: true goes with mode signal only: leave out mode #{settings[:mode]}"
        end

        def check_numbers(settings)
          interval, flush = settings.values_at(:interval_ns, :flush_ns)
          unless interval.is_a?(Integer) && INTERVALS.cover?(interval)
            raise UsageError, "interval_ns #{interval.inspect}: choose 100_000 (100 us) to 1_000_000_000 (1 s)"
          end
          return if flush.is_a?(Integer) && flush.between?(10_000_000, 60_000_000_000)

          raise UsageError, "flush_ns #{flush.inspect}: choose 10_000_000 (10 ms) to 60_000_000_000 (1 min)"
        end

        # Other recordings do not load this code.
        def watch_boot
          require_relative "boot"
          Boot.watch
        end

        def begin_native(path, append, settings)
          path = File.expand_path(path)
          refuse_foreign_file(path) unless append
          native = settings[:native]
          mode, reason = native ? mode_of_native(settings[:mode]) : possible_mode(settings[:mode])
          refusal = native ? Native.native_refusal : nil
          settings = settings.merge(native: false) if refusal
          # Once: a forked child has the same, and another thread may have held the loader's lock at the fork.
          @interpreter ||= Native.interpreter if settings[:perf]
          # Mode outside needs to know of collections. The age of an object is a number of collections.
          gc = settings[:gc] || mode == "outside" || settings[:collectors].key?("allocations")
          gc = false if counts_only?(settings, mode) && Compat.gc_events_slow_allocation?
          notes = notes(settings[:mode], mode, gc)
          notes << "native frames are not recorded here (#{refusal})" if refusal
          settings = settings.merge(unit_ns: unit_for(settings[:interval_ns]), mode: mode)
          head = Header.build(settings: settings, mode_reason: @mode_reason || reason,
                              thread_states: Native.thread_states?(settings[:mode]), walk: Native.walk, notes: notes,
                              interpreter: settings[:perf] ? @interpreter : nil)
          require_relative "holders" if settings[:collectors].dig("allocations", "holders") == "1"
          require_relative "definitions" if settings[:collectors].dig("caches", "definitions") == "1"
          labelled = Labels.prepare # before the start: its own calls must not be recorded
          start_native(path, append, head, settings)
          Native.stop_gc_frames unless gc
          @path = path
          @pid = Process.pid
          Labels.resume(labelled) if labelled
        end

        # Nothing of such a recording needs to know of collections.
        def counts_only?(settings, mode)
          mode == "none" && settings[:collectors].keys == ["caches"] && settings[:collectors]["caches"]["blame"] == "0"
        end

        # Notes for the reports.
        def notes(wanted_mode, mode, gc)
          notes = []
          if wanted_mode == "outside" && mode != "outside"
            notes << "mode outside does not work here (#{Native.outside_refusal}): signals were used"
          end
          unless gc || mode == "none"
            notes << "garbage collection is not told apart (gc: false): its time is with the code that ran"
          end
          notes
        end

        def start_native(path, append, head, settings)
          collectors = settings[:collectors].transform_values { |options| options.merge("home" => HOME) }
          refusal = Native.start(path, append, head, settings[:interval_ns], settings[:unit_ns], settings[:flush_ns],
                                 settings[:mode], Signal.list.fetch(settings[:signal]), Compat.other_threads,
                                 collectors, settings[:native])
          raise explain(refusal, path, settings) if refusal
        end

        def end_native(reason)
          counters = Native.stop(reason) # the first call: a trace would record any call before it
          return counters if counters
          raise CannotMeasure, "stop the recording in the main Ractor" if counters == false

          raise StateError, "another thread is starting or stopping the recording"
        end

        # Chooses mode outside if it was asked for, or if the mode is auto and a core is spare; otherwise signal.
        # @return [Array(String, String)] the mode that is used, and the reason
        def possible_mode(mode)
          return [mode, "asked for"] unless %w[auto outside].include?(mode)

          refusal = auto_refusal if mode == "auto"
          refusal ||= Native.outside_refusal
          return ["outside", mode == "auto" ? "a core is spare" : "asked for"] unless refusal

          ["signal", mode == "auto" ? refusal : "outside was asked for"]
        end

        # Native frames are read by the thread itself, wherever it is.
        def mode_of_native(mode) = ["signal", mode == "auto" ? "native frames were asked for" : "asked for"]

        # Why mode auto does not choose mode outside; nil if it does. Without thread events, a late look at a stack
        # finds little of use.
        def auto_refusal
          return "this Ruby gives no thread events (3.2 and newer do)" unless Native.thread_states?("outside")

          Cores.new(Native.allowed_cores).refusal
        end

        # Guards against overwriting a file that is no recording, after a mistyped name.
        def refuse_foreign_file(path)
          return unless File.file?(path) && File.size?(path) && File.binread(path, 8) != "PITWALL "

          raise UsageError, "#{path} exists and is not a recording: name another file"
        rescue SystemCallError
          nil # opening the file will raise the reason
        end

        # The unit of time in ns: the smallest power of two by which the interval is at most 8191 units. A sample's time
        # then takes two bytes.
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
          settings[:native] = pairs["native"] == "1"
          settings[:perf] = pairs["perf"] == "1"
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

        # Ends the strace that recorded the calls before Pitwall was loaded: from here on the extension records them.
        def end_strace
          tracer = File.read("/proc/self/status")[/^TracerPid:\s*(\d+)/, 1].to_i
          return if tracer.zero? || File.read("/proc/#{tracer}/comm").strip != "strace"

          Process.kill("TERM", tracer)
          1000.times { File.read("/proc/self/status").match?(/^TracerPid:\s*0$/) ? break : sleep(0.001) }
        rescue SystemCallError
          nil # strace has ended by itself
        end

        def part_path
          n = 0
          n += 1 while File.exist?(path = File.join(@parts, "#{Process.pid}-#{n}.pit"))
          path
        end

        # The recording of a forked child.
        def child_path
          @parts ? part_path : @path.sub(/(\.pit)?\z/) { "-#{Process.pid}#{$1}" }
        end

        def stop_at_exit
          return if @at_exit

          @at_exit = true
          at_exit do
            @at_exit = false # a handler that runs after this one may start a recording again
            @window&.give_up
            @conductor&.ending
            # While another thread starts or stops the recording, Native.stop gives nil.
            100.times { recording? && !Native.stop("stop") ? sleep(0.01) : break }
          end
        end
      end
    end
  end

  begin
    Pitwall.load_native!
    # Called by the extension in a forked child and after an exec that failed.
    def Native.forked = Collect::Session.forked
    def Native.go_on = Collect::Session.go_on
  rescue CannotMeasure
    nil # raised again when a recording is started: not every program with this gem in its Gemfile records
  end
end
