# frozen_string_literal: true

require "pitwall/analyse/syscalls/chain"

module Pitwall
  module Analyse
    module Syscalls
      # Several calls in a row: on one path, in one folder, on one name, or anywhere.
      # The pattern may require that calls failed, that they transferred few bytes, or that paths match an expression.
      class Run < Stage
        def initialize(*)
          super
          pattern = @program.pattern
          @takes = @accepts[0]
          @least = pattern.least
          @same = pattern.same
          @fails = pattern.fails
          @bytes = pattern.bytes
          @expression = pattern.paths["a"]
          @held = []
        end

        # Takes the thread's next call.
        #: (Record::Syscall, Integer) -> void
        def call(call, kind)
          unless @takes[kind] && fits?(call)
            flush if @key
            return @chain.route(call, kind, @next)
          end
          key = key(call.path)
          flush if @key && key != @key
          unless @key
            hold
            @key = key
            @count = 0
            @ns = @nodes = nil
          end
          absorb(call, kind)
        end

        # Ends the log.
        #: () -> void
        def finish = @key && flush

        private

        def fits?(call)
          return false if call.path.nil? || (@fails && (call.errno.nil? || call.errno.zero?))
          return false if @bytes && (call.result.nil? || call.result > @bytes)

          @expression.nil? || @expression.match?(call.path)
        end

        def key(path)
          case @same
          when "path" then path
          when "folder" then path[0, path.rindex("/") || 0]
          when "name" then Scan.name(path)
          else ""
          end
        end

        def absorb(call, kind)
          @count += 1
          @label = call.path
          @held.push(call, kind) if @count < @least
          note(call) if call.ns || call.node
        end

        def flush
          release
          label = @same == "anything" ? @label : @key
          @key = nil
          settle(label)
        end
      end
    end
  end
end
