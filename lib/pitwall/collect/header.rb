# frozen_string_literal: true

require_relative "commit"

module Pitwall
  module Collect
    # The HEAD chunk: which program, Ruby, host and settings a recording is of. No argument values, no environment.
    # @api private
    module Header
      module_function

      #: (settings: Hash[Symbol, untyped], mode_reason: String, thread_states: bool, walk: String, ?notes: Array[String]) -> String
      def build(settings:, mode_reason:, thread_states:, walk:, notes: [])
        mode = settings.fetch(:mode)
        JSON.dump(
          schema: "pitwall/record-1", collector: "sampler", collectors: settings.fetch(:collectors, {}).keys, mode: mode, mode_reason: mode_reason,
          interval_ns: settings.fetch(:interval_ns), unit_ns: settings.fetch(:unit_ns),
          started_at_ns: Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond), clock: "monotonic",
          pid: Process.pid, ppid: Process.ppid, commit: Commit.checked_out,
          program: program($PROGRAM_NAME.to_s), argv_options: arguments(settings[:keep_argv]),
          ruby: ruby, host: host, settings: settings.reject { |key, _| key == :unit_ns },
          thread_states: thread_states && mode != "none", walk: walk,
          notes: notes + Compat.limits(thread_states: thread_states, mode: mode, walk: walk)
        )
      end

      # Workers put what they do into their title ("puma: cluster worker 0: 4711 [shop]", "resque-3.2.0: Processing low since 1795437445
      # [Report]"). That part changes, and may say what is nobody's business.
      #: (String) -> String
      def program(title) = File.basename(title.scrub[/\A.+?(?=:? \[|\[\d+\] |: |\z)/m].to_s)

      # Names of options only, unless the user asked for all: values may be secrets.
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
