# frozen_string_literal: true

module Pitwall
  # Ends what this process has started, with all that it started in turn: a child that leads a process group of its own.
  # @api private
  module ProcessGroup
    PAUSE = 0.002 # seconds between two looks whether the leader has ended
    private_constant :PAUSE

    module_function

    # Nothing of the group goes on after this, and the leader is no zombie.
    # @param grace [Float] seconds the leader is given to end by itself
    # @param ask [Boolean] whether to tell the group first that it should
    # @param reaped [Boolean] whether the leader has been waited for
    #: (Integer, grace: Float, ?ask: bool, ?reaped: bool) -> void
    def finish(pid, grace:, ask: true, reaped: false)
      Process.kill("TERM", -pid) if ask
      deadline = clock + grace
      sleep(PAUSE) until reaped || (reaped = Process.wait(pid, Process::WNOHANG)) || clock > deadline
      Process.kill("KILL", -pid)
    rescue Errno::ESRCH, Errno::EPERM, Errno::ECHILD
      nil # all gone
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
