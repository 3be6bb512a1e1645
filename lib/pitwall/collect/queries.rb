# frozen_string_literal: true

require_relative "application"

module Pitwall
  module Collect
    # Counts queries to databases: those that ActiveRecord tells ActiveSupport::Notifications of, and Sequel's. Installs itself
    # where the program has loaded one of them; the program need not ask for it.
    #
    # What is done at a query is the extension's (queries.c). Of its text only a digest is kept.
    # @api private
    module Queries
      # Subscribed to ActiveSupport::Notifications; `call` is the extension's.
      module Subscriber
      end

      # Prepended to Sequel::Database; `log_connection_yield` is the extension's.
      module Log
      end

      EVENT = "sql.active_record"
      # Of the running fiber: what its piece of work adds its queries up in. The extension reads it.
      VARIABLE = :__pitwall_work
      private_constant :EVENT, :VARIABLE

      class << self
        # @return [Object, nil] what ActiveSupport::Notifications.unsubscribe takes
        attr_reader :subscription

        # A recording begins: counts what is there now, or is loaded from now on. A trap can't; what is loaded later still can.
        #: () -> void
        def watch
          names = %i[ActiveSupport Sequel].reject { |name| look(name) }
          Native.watch(self, names) unless names.empty?
        rescue StandardError # a ThreadError in a trap, or whatever another version does: the program goes on
          Native.queries_failed
        end

        # Called by the extension when a file is about to run and the library's constant exists.
        # @return [Boolean] is there nothing more to do?
        #: (Symbol) -> bool
        def look(name)
          return false unless Compat.main_ractor?

          uninterrupted { name == :Sequel ? prepend_log : subscribe }
        end

        # Is a path the application's? Asked by the extension, once for each file.
        #: (String) -> bool
        def application?(path) = uninterrupted { Application.path?(path.valid_encoding? ? path : path.scrub, base: @base) }

        # A piece of work begins. @return [Array] for `leave`
        #: (Thread) -> [Integer, untyped]
        def enter(thread)
          return [Native.now, false] unless @installed

          outer = thread[VARIABLE]
          change(thread, Native.query_work)
          [Native.now, outer]
        end

        # It ends, in the same fiber.
        #: (Thread, [Integer, untyped]) -> void
        def leave(thread, (began, outer))
          return Native.mark(began, nil) if outer == false

          Native.mark(began, thread[VARIABLE])
          change(thread, outer)
        end

        private

        # The extension takes any exception here for ours: what is meant for the thread (a kill, a timeout) waits.
        def uninterrupted(&block) = Thread.handle_interrupt(Object => :never, &block)

        def change(thread, work)
          thread[VARIABLE] = work
          Compat.leave_to_fibers(VARIABLE, work && [thread, work])
        end

        def subscribe
          notifications = Compat.constant(:ActiveSupport, :Notifications)
          return false unless notifications.respond_to?(:monotonic_subscribe) && notifications.notifier

          prepare
          return true if @subscription || @subscribing

          subscribe_to(notifications)
        end

        # Another thread may run meanwhile, and ask for the same.
        def subscribe_to(notifications)
          @subscribing = true
          Native.query_event(Subscriber)
          @subscription = notifications.monotonic_subscribe(EVENT, Subscriber)
          @installed = true
        ensure
          @subscribing = false
        end

        def prepend_log
          database = Compat.constant(:Sequel, :Database)
          return false unless database && database.method_defined?(:log_connection_yield)

          prepare
          return true if database.include?(Log)

          Native.query_log(Log)
          database.prepend(Log)
          @installed = true
        end

        # The folder that the program was started in is the application's, wherever it lies.
        def prepare = @base ||= "#{Dir.pwd.chomp("/")}/"
      end
    end
  end
end
