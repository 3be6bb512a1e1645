# frozen_string_literal: true

require_relative "../compat"
require_relative "json"
require_relative "header"
require_relative "place"

module Pitwall
  module Collect
    # Starts and stops the sampler in the running process, and keeps it recording across forks.
    # Uses no Mutex (it may be called in a trap) and nothing outside core Ruby.
    # @api private
    module Session
      DEFAULTS = { interval_ns: 1_000_000, mode: "signal", signal: "URG", flush_ns: 1_000_000_000, keep_argv: false, collectors: {}.freeze }.freeze
      INTERVALS = (100_000..1_000_000_000)
      # none: no samples, only what other collectors see.
      MODES = %w[signal safepoint none].freeze
      # Signals that are ignored by default: one that arrives after the recording, or after an exec, harms nobody.
      SIGNALS = %w[URG WINCH].freeze
      # Whose calls are nobody's business.
      HOME = File.expand_path("..", __dir__)

      class << self
        # The path being written, nil when not recording.
        attr_reader :path

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
        #: (path: String, **untyped) -> void
        def start(path:, append: false, **settings)
          raise CannotMeasure, "start the recording from the main Ractor" unless Compat.main_ractor?

          Pitwall.load_native!
          raise StateError, "already recording to #{@path}: stop that first" if recording? || @paused

          settings = check(DEFAULTS.merge(settings))
          Compat.guard_ractors
          @settings = settings
          stop_at_exit
          begin_native(path, append, settings)
        end

        # Ends the recording. Returns the counters (STAT of doc/record-format.md).
        # @raise [StateError] not recording
        #: (?reason: String) -> Hash[Symbol, Integer]
        def stop(reason: "stop")
          if @paused
            @paused = false
            return @last_counters
          end
          raise StateError, "not recording: start a recording first" unless recording?

          Native.stop(reason)
        end

        # Ends the segment; time until resume is not recorded.
        # @raise [StateError] not recording
        def pause
          raise StateError, "not recording: nothing to pause" unless recording?

          @last_counters = Native.stop("pause")
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

        # In a process that the command started: PITWALL_PARTS is the folder, PITWALL_OPTIONS the settings ("k=v;k=v").
        #: (Hash[String, String]) -> void
        def start_from_env(env)
          return if recording?

          @parts = env.fetch("PITWALL_PARTS")
          start(path: part_path, **parse(env.fetch("PITWALL_OPTIONS", "")))
        end

        # Called by the extension in a forked child, at its first safepoint.
        def forked
          @paused = false
          begin_native(own_path, false, @settings)
        rescue Error => error
          @parts && File.open(File.join(@parts, "messages"), "a", 0o600) { |file| file.syswrite("a forked child was not recorded: #{error.message}\n") }
        end

        private

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
          settings = settings.merge(unit_ns: unit_for(settings[:interval_ns]))
          head = Header.build(settings: settings, thread_states: Native.thread_states?, walk: Native.walk)
          refusal = Native.start(path, append, head, settings[:interval_ns], settings[:unit_ns], settings[:flush_ns],
                                 settings[:mode], Signal.list.fetch(settings[:signal]), Compat.other_threads, settings[:collectors].transform_values { |options| options.merge("home" => HOME) })
          raise explain(refusal, path, settings) if refusal

          @path = path
          @pid = Process.pid
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
          at_exit { stop if recording? }
        end
      end
    end
  end

  begin
    Pitwall.load_native!
    # The extension tells a forked child that it is one.
    def Native.forked = Collect::Session.forked
  rescue CannotMeasure
    nil # said when a recording is to be started, not to every program that has us in its Gemfile
  end
end
