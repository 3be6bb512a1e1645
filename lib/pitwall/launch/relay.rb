# frozen_string_literal: true

module Pitwall
  class Launch
    # Passes this process's signals on to a running command. A signal that stops, reloads or interrupts `pitwall` so
    # does this to the command, and Pitwall lives on to report.
    #
    # Keys of a terminal (Ctrl-C, Ctrl-\, Ctrl-Z) signal the whole foreground process group. The command then has the
    # signal already, and Pitwall must not send it again.
    #
    # A signal may be ignored from outside (nohup, a shell script's background job). It stays ignored until the
    # command has started, because the command inherits that. From then on it is passed on: the command may have a
    # handler of its own.
    # @api private
    class Relay
      # Signals of a terminal's keys.
      KEYS = %w[INT QUIT TSTP].freeze
      RELAYED = (KEYS + %w[TERM HUP USR1 USR2 CONT]).freeze
      GET_FOREGROUND_GROUP = RUBY_PLATFORM.include?("darwin") ? 0x40047477 : 0x540F # TIOCGPGRP
      private_constant :KEYS, :RELAYED, :GET_FOREGROUND_GROUP

      # Signals that ask a program to stop.
      STOPPING = %w[INT QUIT TERM HUP].freeze
      private_constant :STOPPING

      # @return [String, nil] the first signal that asked to stop ("INT"), whatever the command did at it
      attr_reader :stopped_by

      # Relays signals while the block runs.
      #: [T] () { (Relay) -> T } -> T
      def self.during
        relay = new
        relay.install
        yield relay
      ensure
        relay.restore
      end

      def initialize
        @pid = nil
        @stopped_by = nil
        @early = []
        @previous = {}
      end

      # Sets the process that gets the signals; nil: none. Passes on the signals that came before
      # the command had started.
      # @return [Integer, nil] pid
      #: (Integer?) -> Integer?
      def to(pid)
        @pid = pid
        return unless pid

        RELAYED.each do |name|
          trap(name) { pass_on(name) unless KEYS.include?(name) && foreground? } if ignored?(name)
        end
        pass_on(@early.shift) until @early.empty?
        pid
      end

      def install
        RELAYED.each do |name|
          @previous[name] = trap(name) { receive(name) }
          trap(name, "IGNORE") if ignored?(name)
        end
      end

      def restore
        @previous.each { |name, handler| trap(name, handler || "SYSTEM_DEFAULT") }
      end

      private

      # Whether the parent process had this process ignore the signal.
      def ignored?(name) = %w[IGNORE SIG_IGN].include?(@previous[name])

      def receive(name)
        @stopped_by ||= name if STOPPING.include?(name)
        pass_on(name) unless KEYS.include?(name) && foreground?
        Process.kill("STOP", Process.pid) if name == "TSTP"
      end

      def pass_on(name)
        return Process.kill(name, @pid) if @pid

        @early << name unless ignored?(name)
      rescue Errno::ESRCH, Errno::EPERM
        nil # the command has just ended, or runs as another user (sudo)
      end

      # Whether this process group is the terminal's foreground group, which gets the signals of keys.
      def foreground?
        File.open("/dev/tty", File::RDWR | File::NOCTTY) do |terminal|
          group = [0].pack("i")
          terminal.ioctl(GET_FOREGROUND_GROUP, group)
          group.unpack1("i") == Process.getpgrp
        end
      rescue SystemCallError
        false
      end
    end
  end
end
