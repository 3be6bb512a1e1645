# frozen_string_literal: true

require "pitwall/analyse/syscalls/chain"

module Pitwall
  module Analyse
    module Syscalls
      # Calls that were made before, anywhere in the log, on the same path and with the same result.
      # The first call passes through, because it may be needed. At the end of the log a marker replaces the others.
      class Repeat < Stage
        # Most paths that are remembered. Then the stage emits its markers and starts again.
        MOST = 60_000
        Seen = Struct.new(:count, :ns, :nodes)
        private_constant :MOST, :Seen

        def initialize(*)
          super
          @takes = @accepts[0]
          @expression = @program.pattern.paths["a"]
          @fails = @program.pattern.fails
          @seen = {}
          @repeated = {}
        end

        # Takes the thread's next call.
        #: (Record::Syscall, Integer) -> void
        def call(call, kind)
          path = call.path
          return @chain.route(call, kind, @next) unless @takes[kind] && path && wanted?(call)

          key = [kind, call.errno, path]
          return add_repeated(key, call) if @seen.key?(key)

          finish if @seen.size >= MOST
          @seen[key] = true
          @chain.route(call, kind, @next)
        end

        # Ends the log.
        #: () -> void
        def finish
          repeated, @repeated = @repeated, {}
          @seen.clear
          repeated.each { |path, seen| @chain.mark(Marker.new(@at, path, seen.count, seen.ns, seen.nodes), @next) }
        end

        private

        def wanted?(call)
          return false if @fails && (call.errno.nil? || call.errno.zero?)

          @expression.nil? || @expression.match?(call.path)
        end

        def add_repeated(key, call)
          seen = @repeated[key[2]] ||= Seen.new(0)
          seen.count += 1
          seen.ns = seen.ns.to_i + call.ns if call.ns
          Stage.add(seen.nodes ||= {}, call) if call.node
        end
      end
    end
  end
end
