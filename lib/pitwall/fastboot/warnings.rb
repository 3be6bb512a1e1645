# frozen_string_literal: true

module Pitwall
  module Fastboot
    # Notices that a thread prints a warning while it compiles or parses a file: what a pack has would not print it.
    # @api private
    module Warnings
      @heard = {} # by thread that listens: has it printed one?

      class << self
        # From now on this thread's warnings are noticed.
        #: () -> void
        def listen
          Warning.singleton_class.prepend(Noticed) unless Warning.singleton_class.include?(Noticed)
          @heard[Thread.current] = false
        end

        # Has this thread printed no warning since it began to listen? Ends listening. If something else listened on the
        # same thread meanwhile, the answer is false.
        #: () -> bool
        def none? = @heard.delete(Thread.current) == false

        #: () -> void
        def note
          @heard[Thread.current] = true if @heard.key?(Thread.current)
        end
      end

      # Stands before Ruby's own Warning.warn.
      module Noticed
        def warn(*, **)
          Warnings.note if Fastboot.main_ractor?
          super
        end
      end
    end
  end
end
