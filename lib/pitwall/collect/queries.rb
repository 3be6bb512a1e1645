# frozen_string_literal: true

require_relative "../application"

module Pitwall
  module Collect
    # Counts database queries of ActiveRecord (by ActiveSupport::Notifications) and of Sequel. It installs itself when
    # the program has loaded one of them; the program need not ask for it.
    #
    # The extension handles each query (queries.c). Of a query's text it keeps a digest only.
    # @api private
    module Queries
      # Subscribed to ActiveSupport::Notifications. The extension defines `call`.
      module Subscriber
      end

      # Prepended to Sequel::Database. The extension defines `log_connection_yield`.
      module Log
      end

      EVENT = "sql.active_record"
      # The fiber-local variable with the query totals of the fiber's request. The extension reads it.
      VARIABLE = :__pitwall_work
      private_constant :EVENT, :VARIABLE

      class << self
        # @return [Object, nil] the argument for ActiveSupport::Notifications.unsubscribe
        attr_reader :subscription

        # Called when a recording begins. Installs itself in the libraries that are loaded, and waits for the others. In
        # a trap it cannot install itself; a library that is loaded later is still found.
        #: () -> void
        def watch
          names = %i[ActiveSupport Sequel].reject { |name| look(name) }
          Native.watch(self, names) unless names.empty?
        rescue StandardError # a ThreadError in a trap, or an error in another version of the library
          Native.queries_failed
        end

        # Called by the extension when a file is about to run and the library's constant exists.
        # @return [Boolean] whether nothing is left to do
        #: (Symbol) -> bool
        def look(name)
          return false unless Compat.main_ractor?

          uninterrupted { name == :Sequel ? prepend_log : subscribe }
        end

        # Whether a path is the application's. Called by the extension, once for each file.
        #: (String) -> bool
        def application?(path)
          uninterrupted { Application.path?(path.valid_encoding? ? path : path.scrub, base: @base) }
        end

        # Called when a request begins.
        # @return [Array] the argument for `leave`
        #: (Thread) -> [Integer, untyped]
        def enter(thread)
          return [Native.begin_work, false] unless @installed

          outer = thread[VARIABLE]
          change(thread, Native.query_work)
          [Native.begin_work, outer]
        end

        # Called when the request ends, in the same fiber.
        # @param counted [Object, nil] value of Native.count_work
        #: (Thread, [Integer, untyped], untyped) -> void
        def leave(thread, (began, outer), counted)
          return Native.mark(began, nil, counted) if outer == false

          Native.mark(began, thread[VARIABLE], counted)
          change(thread, outer)
        end

        private

        # Delays exceptions from other threads (a kill, a timeout). The extension would treat them as
        # errors of this module.
        def uninterrupted(&block) = Thread.handle_interrupt(Object => :never, &block)

        def change(thread, work)
          thread[VARIABLE] = work
          Compat.inherit_in_fibers(VARIABLE, work && [thread, work])
        end

        def subscribe
          notifications = Compat.constant(:ActiveSupport, :Notifications)
          return false unless notifications.respond_to?(:monotonic_subscribe) && notifications.notifier

          prepare
          return true if @subscription || @subscribing

          subscribe_to(notifications)
        end

        # Another thread may call `look` meanwhile: @subscribing has it return.
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

        # Files below the program's first working directory are the application's, wherever that lies.
        def prepare = @base ||= "#{Dir.pwd.chomp("/")}/"
      end
    end
  end
end
