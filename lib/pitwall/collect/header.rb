# frozen_string_literal: true

require_relative "commit"

module Pitwall
  module Collect
    # Builds the HEAD chunk: the program, Ruby, host and settings of a recording. It leaves out argument
    # values and the environment.
    # @api private
    module Header
      module_function

      # @param settings [Hash] as checked by Session
      # @param mode_reason [String] why that mode was chosen
      # @param thread_states [Boolean] whether thread states are recorded
      # @param walk [String] how stacks are walked
      # @param interpreter [Array, nil] path and addresses of the interpreter's loop (Native.interpreter)
      # @return [String] JSON
      #: (settings: Hash[Symbol, untyped], mode_reason: String, thread_states: bool, walk: String,
      #:   ?notes: Array[String], ?interpreter: Array[String | Integer]?) -> String
      def build(settings:, mode_reason:, thread_states:, walk:, notes: [], interpreter: nil)
        mode = settings.fetch(:mode)
        JSON.dump(
          schema: "pitwall/record-1", collector: "sampler", collectors: settings.fetch(:collectors, {}).keys,
          mode: mode, mode_reason: mode_reason,
          interval_ns: settings.fetch(:interval_ns), unit_ns: settings.fetch(:unit_ns),
          started_at_ns: Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond), clock: "monotonic",
          pid: Process.pid, ppid: Process.ppid, commit: Commit.checked_out,
          program: program($PROGRAM_NAME.to_s), argv_options: arguments(settings[:keep_argv]),
          ruby: ruby, host: host, settings: settings.reject { |key, _| %i[unit_ns perf].include?(key) },
          thread_states: thread_states && mode != "none", walk: walk, interpreter: interpreter,
          notes: notes + Compat.limits(thread_states: thread_states, mode: mode, walk: walk)
        )
      end

      # The program's name without the status that workers put into their title: "puma: cluster worker 0: 4711 [shop]",
      # "resque-3.2.0: Processing low since 1795437445 [Report]". The status changes, and may be confidential.
      #: (String) -> String
      def program(title) = File.basename(title.scrub[/\A.+?(?=:? \[|\[\d+\] |: |\z)/m].to_s)

      # The names of options only, because values may be secrets. With `keep`, all arguments.
      def arguments(keep)
        return ARGV.dup if keep

        ARGV.map(&:scrub).grep(/\A-/).map { |argument| argument[/\A--?[\w-]+/] || "-" }
      end

      def ruby
        { version: RUBY_VERSION, engine: RUBY_ENGINE, patchlevel: RUBY_PATCHLEVEL, platform: RUBY_PLATFORM,
          description: RUBY_DESCRIPTION, jit: Compat.jit }
      end

      def host
        cpuinfo = read("/proc/cpuinfo")
        {
          kernel: read("/proc/sys/kernel/osrelease").strip,
          cpu: cpuinfo[/^model name\s*:\s*(.+)$/, 1],
          cores: cpuinfo.scan(/^processor\s*:/).size,
          memory_bytes: read("/proc/meminfo")[/^MemTotal:\s*(\d+) kB/, 1].to_i * 1024
        }
      end

      def read(path)
        File.read(path)
      rescue SystemCallError
        ""
      end
    end
    private_constant :Header
  end
end
