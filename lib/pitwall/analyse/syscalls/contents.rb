# frozen_string_literal: true

require "pitwall/analyse/syscalls/chain"

module Pitwall
  module Analyse
    module Syscalls
      # A gem's files asked for one by one from inside its folder, so by relative paths: a run that begins at a name without a slash. Another such name
      # after something deeper begins the next.
      class Contents < Stage
        def initialize(*)
          super
          @takes = @accepts[0]
          @least = @program.pattern.least
          @except = @program.pattern.except.to_h { |name| [name, true] }
          @held = []
        end

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

        # The log has ended.
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
