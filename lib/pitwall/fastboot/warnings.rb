# frozen_string_literal: true

module Pitwall
  module Fastboot
    # Notices that a thread prints a warning while it compiles or parses a file: what a pack has would not print it.
    #
    # Ruby prints by Warning.warn. No module is prepended to Warning, for two reasons. Ruby asks for the
    # parameters of `warn`. And if the program had made an alias of `warn`, the alias would call itself without end.
    # @api private
    module Warnings
      # Ruby's older parser suppresses traces.
      TRACEABLE = RUBY_DESCRIPTION.include?("+PRISM")
      private_constant :TRACEABLE

      @heard = {} # by thread that listens: has it printed one?
      @method = nil # Warning.warn as it was when it was looked at last
      @noticed = false # are its calls noticed?

      class << self
        # From now on this thread's warnings are noticed.
        # @return whether they are. Not if the program's own Warning.warn can't be traced
        #: () -> bool
        def listen
          return false unless noticed?

          @heard[Thread.current] = false
          true
        end

        # Has this thread printed no warning since it began to listen? Ends listening. If something else listened on the
        # same thread meanwhile, the answer is false.
        #: () -> bool
        def none? = @heard.delete(Thread.current) == false

        #: () -> void
        def note
          @heard[Thread.current] = true if @heard.key?(Thread.current)
        end

        private

        def noticed?
          now = Warning.method(:warn)
          return @noticed if now == @method

          if now.source_location.nil? && now.owner == Warning
            @own ||= replace
            now = Warning.method(:warn)
          end
          @method = now
          return @noticed = trace(now) if now.source_location

          @noticed = now.owner == Warning && Warning.instance_method(:warn) == @own
        end

        # Warning#warn, which prints.
        # @return [UnboundMethod, nil] what stands there now; nil: the program has its own
        def replace
          plain = Warning.instance_method(:warn)
          return if plain.source_location

          Native.replace_warn(self, plain)
          Warning.instance_method(:warn)
        end

        # A method of the program's.
        def trace(method)
          return false unless TRACEABLE

          @trace&.disable
          @trace = TracePoint.new(:call) { note if Fastboot.main_ractor? }
          @trace.enable(target: method)
          true
        rescue ArgumentError # it is none in Ruby
          false
        end
      end
    end
  end
end
