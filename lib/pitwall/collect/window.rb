# frozen_string_literal: true

module Pitwall
  module Collect
    # The part of a command's time that is recorded: `pitwall profile --delay 5s --duration 30s -- CMD`. Begin and
    # end are times of the monotonic clock, which all processes of a machine share. Each process of the command
    # follows them by itself.
    #
    # A thread waits for the begin and the end. It calls no method that the program may have redefined.
    # @api private
    class Window
      NAME = "pitwall window"
      SLEEP = Kernel.instance_method(:sleep)
      TRIES = 100 # with 10 ms between them
      private_constant :SLEEP, :TRIES

      # Starts the thread in children that are forked before the recording begins. For later children the extension
      # calls Session.forked. Process.daemon does not call Process._fork.
      module Forks
        #: () -> Integer
        def _fork = super.tap { |pid| Session.window&.in_child if pid.zero? }
        def daemon(...) = super.tap { Session.window&.in_child }
      end
      private_constant :Forks

      # @param options [String] "begin_at_ns=…;end_at_ns=…" among others
      # @return [Window, nil] nil: the whole time of the command is recorded
      #: (String) -> Window?
      def self.of(options)
        pairs = options.split(";").to_h { |pair| pair.split("=", 2) }
        from, till = pairs.values_at("begin_at_ns", "end_at_ns").map { |text| text && Integer(text) }
        new(from, till) if from || till
      end

      # @param from [Integer, nil] begin in ns; nil: at once
      # @param till [Integer, nil] end in ns; nil: when the program ends
      #: (Integer?, Integer?) -> void
      def initialize(from, till)
        @from = from
        @till = till
        @begun = false
      end

      # Records from begin to end; begins at once if the begin has passed. The block starts the recording.
      # @raise [Pitwall::Error] the recording can't be started
      #: () { () -> void } -> void
      def keep(&start)
        @start = start
        return if over?
        if begun?
          begin_now
          return watch
        end

        Process.singleton_class.prepend(Forks)
        watch
      end

      # Whether the end has passed.
      #: () -> bool
      def over? = !@till.nil? && Native.now >= @till

      # Whether the recording begins later than the program.
      #: () -> bool
      def delays? = !@from.nil?

      # Starts the thread. Session also calls it in a forked child, when the child's own recording has begun.
      #: () -> void
      def watch
        return unless @till || !@begun

        @thread = Thread.new do
          Thread.current.name = NAME
          Thread.current.report_on_exception = false
          wait_for_times
        end
        @thread.name = NAME # for a program that lists its threads before this thread has run
        @thread.thread_variable_set(:fork_safe, true) # otherwise Puma warns of this thread when it forks
      rescue ThreadError => error
        Session.add_message("the times of --delay and --duration could not be kept: #{error.message}")
      end

      # Called in a forked child of a process that is not recorded yet.
      #: () -> void
      def in_child
        watch unless @begun || over?
      end

      # Called when the program ends: no recording begins any more.
      #: () -> void
      def give_up
        @begun = true
        @thread&.kill unless Thread.current == @thread
      end

      private

      def begun? = @from.nil? || Native.now >= @from

      def begin_now
        @begun = true
        @start.call
      end

      # Raises nothing: a failure becomes a message.
      def wait_for_times
        unless @begun
          wait_until(@from)
          return if @begun || over?

          begin_now
        end
        return unless @till

        wait_until(@till)
        stop
      rescue StandardError => error
        line = error.message.lines.first.to_s.chomp
        Session.add_message("ruby #{RUBY_VERSION} could not keep the times of --delay and --duration: #{line}")
      end

      # Another thread may be starting or stopping the recording: after an exec that failed, a recording begins again.
      def stop
        tries ||= 0
        Session.stop if Session.recording?
      rescue StateError
        raise if (tries += 1) > TRIES

        SLEEP.bind_call(self, 0.01)
        retry
      end

      def wait_until(time)
        while (left = time - Native.now).positive?
          SLEEP.bind_call(self, left.fdiv(1_000_000_000))
        end
      end
    end
  end
end
