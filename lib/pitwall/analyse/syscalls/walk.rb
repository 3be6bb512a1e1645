# frozen_string_literal: true

require "pitwall/analyse/syscalls/chain"

module Pitwall
  module Analyse
    module Syscalls
      # Calls on a path's folders, from the first component down, one component at a time.
      # The pattern may name calls that follow (`then`). The marker has the deepest path.
      class Walk < Stage
        SLASH = 47
        private_constant :SLASH

        def initialize(*)
          super
          @takes, @tail = @accepts
          @count = 0
        end

        # Takes the thread's next call.
        #: (Record::Syscall, Integer) -> void
        def call(call, kind)
          return close(call) if @deepest && @tail[kind] && call.path == @deepest && @count > 1

          path = call.path if @takes[kind]
          if path
            if @deepest
              return absorb(call, path) if below?(path)

              emit
            end
            return start(call, path) if first?(path)
          elsif @deepest
            emit
          end
          @chain.route(call, kind, @next)
        end

        # Ends the log.
        #: () -> void
        def finish = @deepest && emit

        private

        def first?(path) = path.getbyte(0) == SLASH && path.bytesize > 1 && !path.index("/", 1)

        def below?(path)
          from = @deepest.size
          path.rindex("/") == from && path.size > from + 1 && path.start_with?(@deepest)
        end

        def start(call, path)
          hold
          @ns = @nodes = nil
          @count = 0
          absorb(call, path)
        end

        def absorb(call, path)
          @deepest = path
          @count += 1
          note(call) if call.ns || call.node
        end

        # Absorbs the call that ends the pattern (`then`).
        def close(call)
          absorb(call, call.path)
          emit
        end

        def emit
          marker = Marker.new(@at, @deepest, @count, @ns, @nodes)
          @deepest = nil
          release
          @chain.mark(marker, @next)
        end
      end
    end
  end
end
