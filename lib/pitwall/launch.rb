# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/launch/relay"

module Pitwall
  # Starts a command as a shell does, and waits for its end.
  #
  # The command gets this process's standard streams, other open files, working directory and process group, as from a
  # shell. Signals to this process are passed on to it ({Relay}).
  class Launch
    # pid:        process id
    # status:     Process::Status
    # wall_ns:    wall time
    # cpu_ns:     CPU time of the command and of the processes that it waited for
    # stopped_by: the first signal that asked to stop ("INT"); nil if none came
    Finished = Struct.new(:pid, :status, :wall_ns, :cpu_ns, :stopped_by, keyword_init: true)

    # There is no such command. The exit status is the shell's.
    class NotFound < Error
      def status = 127
    end

    # The command exists but can't be run. The exit status is the shell's.
    class NotExecutable < Error
      def status = 126
    end

    # @param env [Hash] variables to set for the command; a variable with nil is removed
    # @param redirections [Hash] as for Process.spawn
    #: (Array[String], ?env: Hash[String, String?], **untyped) -> void
    def initialize(command, env: {}, **redirections)
      @command = command
      @env = env
      @redirections = redirections
    end

    # Runs the command to its end.
    # @raise [NotFound, NotExecutable]
    #: () -> Finished
    def call
      Relay.during do |relay|
        started_ns = clock_ns
        cpu_before_ns = children_cpu_ns
        pid = relay.to(start)
        _, status = Process.wait2(pid)
        relay.to(nil)
        Finished.new(pid: pid, status: status, wall_ns: clock_ns - started_ns,
                     cpu_ns: children_cpu_ns - cpu_before_ns, stopped_by: relay.stopped_by)
      end
    end

    private

    def start
      program, *arguments = @command
      # With the pair, Ruby does not give a command of one word to a shell.
      Process.spawn(@env, [program, program], *arguments, @redirections)
    rescue Errno::ENOENT, Errno::ENOTDIR
      if script?(program)
        raise NotExecutable, "#{program}: not executable: the interpreter its first line names is missing"
      end

      raise NotFound, "#{program}: command not found#{hint(program)}"
    rescue Errno::EACCES, Errno::ENOEXEC, Errno::EISDIR
      raise NotExecutable, "#{program}: not executable: #{reason(program)}"
    rescue Errno::E2BIG
      raise NotExecutable, "#{program}: the arguments and environment are too long for this system"
    end

    def script?(program) = program.include?("/") && File.file?(program)

    def reason(program)
      return "it is a folder" if File.directory?(program)

      "chmod +x it#{", or try -- ruby #{program}" if program.end_with?(".rb")}"
    end

    def hint(program)
      return "; write the command without quotes: -- #{program}" if program.include?(" ")
      return if program.include?("/") || !File.file?(program) || !program.end_with?(".rb")

      "; its folder is missing: try -- ruby #{program}"
    end

    def clock_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

    def children_cpu_ns
      times = Process.times
      ((times.cutime + times.cstime) * 1_000_000_000).round
    end
  end
end
