# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/launch/relay"

module Pitwall
  # Starts a command as a shell would and stays with it until it ends.
  #
  # The command gets this process's standard streams, its further open files, working directory and process group,
  # so it can't tell that it isn't run by the shell; signals sent to this process reach it ({Relay}).
  class Launch
    # What became of the command. `cpu_ns` counts the processes it waited for as well; `stopped_by` is the signal by which someone
    # meant to stop it ("INT"), nil where nobody did.
    Finished = Struct.new(:pid, :status, :wall_ns, :cpu_ns, :stopped_by, keyword_init: true)

    # The command could not be started; the statuses are the shell's.
    class NotFound < Error
      def status = 127
    end

    # It is there, but can't be run.
    class NotExecutable < Error
      def status = 126
    end

    #: (Array[String], ?env: Hash[String, String?], **untyped) -> void
    # @param env [Hash] variables to set (or, with nil, to unset) for the command
    # @param redirections [Hash] as for Process.spawn
    def initialize(command, env: {}, **redirections)
      @command = command
      @env = env
      @redirections = redirections
    end

    # Runs the command to its end.
    # Raises NotFound, NotExecutable.
    #: () -> Finished
    def call
      Relay.during do |relay|
        started_ns = clock_ns
        cpu_before_ns = children_cpu_ns
        pid = relay.to(start)
        _, status = Process.wait2(pid)
        relay.to(nil)
        Finished.new(pid: pid, status: status, wall_ns: clock_ns - started_ns, cpu_ns: children_cpu_ns - cpu_before_ns, stopped_by: relay.stopped_by)
      end
    end

    private

    def start
      program, *arguments = @command
      # The pair keeps Ruby from giving a lone word to a shell.
      Process.spawn(@env, [program, program], *arguments, @redirections)
    rescue Errno::ENOENT, Errno::ENOTDIR
      raise NotExecutable, "#{program}: not executable: the interpreter its first line names is missing" if script?(program)

      raise NotFound, "#{program}: command not found#{hint(program)}"
    rescue Errno::EACCES, Errno::ENOEXEC, Errno::EISDIR
      why = File.directory?(program) ? "it is a folder" : "chmod +x it#{", or try -- ruby #{program}" if program.end_with?(".rb")}"
      raise NotExecutable, "#{program}: not executable: #{why}"
    rescue Errno::E2BIG
      raise NotExecutable, "#{program}: the arguments and environment are too long for this system"
    end

    def script?(program) = program.include?("/") && File.file?(program)

    def hint(program)
      return "; write the command without quotes: -- #{program}" if program.include?(" ")

      "; its folder is missing: try -- ruby #{program}" if !program.include?("/") && File.file?(program) && program.end_with?(".rb")
    end

    def clock_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

    def children_cpu_ns
      times = Process.times
      ((times.cutime + times.cstime) * 1_000_000_000).round
    end
  end
end
