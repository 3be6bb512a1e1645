# frozen_string_literal: true

require "pitwall/analyse/syscalls/chain"

module Pitwall
  module Analyse
    module Syscalls
      # A call that was made before, anywhere in the log, on the same path and with the same outcome. The first one stays where it is: it may be needed;
      # the marker, at the end of the log, absorbs the others.
      class Repeat < Stage
        # Paths remembered; beyond, it begins anew, and marks what it has.
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

        #: (Record::Syscall, Integer) -> void
        def call(call, kind)
          path = call.path
          return @chain.route(call, kind, @next) unless @takes[kind] && path && wanted?(call)

          key = [kind, call.errno, path]
          return again(key, call) if @seen.key?(key)

          finish if @seen.size >= MOST
          @seen[key] = true
          @chain.route(call, kind, @next)
        end

        # The log has ended.
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

        def again(key, call)
          seen = @repeated[key[2]] ||= Seen.new(0)
          seen.count += 1
          seen.ns = seen.ns.to_i + call.ns if call.ns
          Stage.add(seen.nodes ||= {}, call) if call.node
        end
      end
    end
  end
end
