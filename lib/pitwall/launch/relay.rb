# frozen_string_literal: true

module Pitwall
  class Launch
    # Passes on the signals this process gets while a command runs, so that whoever stops, reloads or interrupts
    # `pitwall` does so to the command, and Pitwall lives to report.
    #
    # The keys of a terminal (Ctrl-C, Ctrl-\, Ctrl-Z) signal the whole foreground process group: there the command
    # has the signal already, and must not get it twice.
    #
    # A signal that is ignored from outside (nohup, a script's background) stays so until the command has started, which inherits
    # that. The command may have a handler of its own, so the signal is passed on from then on.
    # @api private
    class Relay
      KEYS = %w[INT QUIT TSTP].freeze
      PASSED = (KEYS + %w[TERM HUP USR1 USR2 CONT]).freeze
      GET_FOREGROUND_GROUP = RUBY_PLATFORM.include?("darwin") ? 0x40047477 : 0x540F # TIOCGPGRP
      private_constant :KEYS, :PASSED, :GET_FOREGROUND_GROUP

      STOPPING = %w[INT QUIT TERM HUP].freeze
      private_constant :STOPPING

      # @return [String, nil] the first signal that came and asks to stop, whatever the command made of it
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

      # Sets whom to signal, nil for nobody, and hands over what came before the command had started.
      #: (Integer?) -> Integer?
      def to(pid)
        @pid = pid
        PASSED.each { |name| trap(name) { pass_on(name) unless KEYS.include?(name) && foreground? } if ignored?(name) } if pid
        pass_on(@early.shift) while pid && !@early.empty?
        pid
      end

      def install
        PASSED.each do |name|
          @previous[name] = trap(name) { receive(name) }
          trap(name, "IGNORE") if ignored?(name)
        end
      end

      def restore
        @previous.each { |name, handler| trap(name, handler || "SYSTEM_DEFAULT") }
      end

      private

      # From outside, by who started this process.
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
        nil # it has just ended, or became another user's (sudo): nothing to pass on to
      end

      # Whether a key press on the terminal reaches this process group.
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
