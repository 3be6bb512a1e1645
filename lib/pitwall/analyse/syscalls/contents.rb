# frozen_string_literal: true

require "pitwall/analyse/syscalls/chain"

module Pitwall
  module Analyse
    module Syscalls
      # Files of a gem that are looked up one by one from inside its folder, so by relative paths.
      # A run starts at a name without a slash. After a path with a slash, another such name starts the next run.
      class Contents < Stage
        def initialize(*)
          super
          @takes = @accepts[0]
          @least = @program.pattern.least
          @except = @program.pattern.except.to_h { |name| [name, true] }
          @held = []
        end

        # Takes the thread's next call.
        #: (Record::Syscall, Integer) -> void
        def call(call, kind)
          path = call.path if @takes[kind]
          unless path
            close if @inside
            return @chain.route(call, kind, @next)
          end
          deeper = path.include?("/")
          close if @inside && @deep && !deeper
          start(deeper, path) unless @inside
          @deep = true if deeper
          @gem ? absorb(call, kind) : @chain.route(call, kind, @next)
        end

        # Ends the log.
        #: () -> void
        def finish = @inside && close

        private

        def start(deeper, path)
          hold
          @inside = true
          @deep = false
          @gem = !deeper && !@except.key?(path)
          @count = 0
          @ns = @nodes = nil
        end

        def absorb(call, kind)
          @count += 1
          @held.push(call, kind) if @count < @least
          note(call) if call.ns || call.node
        end

        def close
          release
          @inside = false
          settle("(some-gem)") if @gem
        end
      end
    end
  end
end
