# frozen_string_literal: true

module Pitwall
  # Ends a child process that leads a process group, together with all processes of the group.
  # @api private
  module ProcessGroup
    POLL_S = 0.002 # between two checks whether the leader has ended
    private_constant :POLL_S

    module_function

    # Afterwards no process of the group runs, and the leader is no zombie.
    # @param pid [Integer] process id of the leader
    # @param grace [Float] seconds for the leader to end by itself
    # @param ask [Boolean] whether to send SIGTERM to the group first
    # @param reaped [Boolean] whether the leader has been waited for already
    #: (Integer, grace: Float, ?ask: bool, ?reaped: bool) -> void
    def finish(pid, grace:, ask: true, reaped: false)
      Process.kill("TERM", -pid) if ask
      deadline = clock + grace
      sleep(POLL_S) until reaped || (reaped = Process.wait(pid, Process::WNOHANG)) || clock > deadline
      Process.kill("KILL", -pid)
    rescue Errno::ESRCH, Errno::EPERM, Errno::ECHILD
      nil # the group has ended
    ensure
      reap(pid) unless reaped
    end

    def reap(pid)
      Process.wait(pid)
    rescue Errno::ECHILD
      nil
    end

    def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    private_class_method :reap, :clock
  end
end
