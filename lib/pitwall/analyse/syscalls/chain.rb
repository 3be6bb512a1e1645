# frozen_string_literal: true

require "pitwall/analyse/syscalls/kinds"

module Pitwall
  module Analyse
    module Syscalls
      # Replaces the calls that match a pattern.
      #
      # at:    number of the pattern
      # path:  path of the calls (of a scan, the last path)
      # count: number of calls
      # ns:    their time, or nil
      # nodes: { node of their stack => [calls, ns] }, or nil
      Marker = Struct.new(:at, :path, :count, :ns, :nodes)

      # All passes over the calls of one thread. A pass is a stage. It reads the calls that earlier stages let through.
      # A call goes directly to the first stage that could start with it or that holds calls. Most stages see few calls.
      # Calls that no stage absorbs go to the sink, in order.
      class Chain
        # Bit mask → number of its lowest bit, for up to ten stages.
        LOWEST = Array.new(1 << 10) { |bits| bits.zero? ? nil : (bits & -bits).bit_length - 1 }.freeze
        private_constant :LOWEST

        # Stages that hold calls, one bit for each.
        attr_accessor :busy

        # @param sink gets rest(call, kind) for a call that no stage absorbed, and marker(marker)
        #: (Array[Program], Kinds, untyped) -> void
        def initialize(programs, kinds, sink)
          @wants = kinds.wants
          @sink = sink
          @busy = 0
          @stages = programs.each_with_index.map { |program, at| program.stage(self, at) }
        end

        # Passes a call to the stages from number `from` on.
        #: (Record::Syscall, Integer, ?Integer) -> void
        def route(call, kind, from = 0)
          mask = (@wants[kind] | @busy) >> from
          if mask == 0 # not zero?: an operator is faster, and most calls of a long log take this branch
            kind == Kinds::MARKER ? @sink.marker(call) : @sink.rest(call, kind)
          else
            @stages[from + (LOWEST[mask] || (mask & -mask).bit_length - 1)].call(call, kind)
          end
        end

        # Passes the marker of absorbed calls to later stages.
        #: (Marker, Integer) -> void
        def mark(marker, from) = route(marker, Kinds::MARKER, from)

        # Ends the log. Each stage absorbs or passes on the calls that it holds.
        #: () -> void
        def finish = @stages.each(&:finish)
      end

      # Base class of stages.
      class Stage
        # Adds a call to the sums of its stack's node.
        # @api private
        def self.add(nodes, call)
          found = nodes[call.node] ||= [0, 0]
          found[0] += 1
          found[1] += call.ns if call.ns
        end

        #: (Chain, Integer, Program) -> void
        def initialize(chain, at, program)
          @chain = chain
          @at = at
          @bit = 1 << at
          @next = at + 1
          @program = program
          @accepts = program.accepts
        end

        private

        def hold = @chain.busy |= @bit
        def release = @chain.busy &= ~@bit

        # Adds an absorbed call's time and stack.
        def note(call)
          @ns = @ns.to_i + call.ns if call.ns
          Stage.add(@nodes ||= {}, call) if call.node
        end

        # Ends a run of `@count` calls with a marker. If there are too few calls, passes on the held ones instead.
        def settle(label)
          held, @held = @held, []
          return @chain.mark(Marker.new(@at, label, @count, @ns, @nodes), @next) if @count >= @least

          at = -2
          @chain.route(held[at], held[at + 1], @next) while (at += 2) < held.size
        end

        # Passes on the marker of these calls.
        def marker_of(calls, label)
          ns = nodes = nil
          calls.each do |call|
            ns = ns.to_i + call.ns if call.ns
            Stage.add(nodes ||= {}, call) if call.node
          end
          @chain.mark(Marker.new(@at, label, calls.size, ns, nodes), @next)
        end
      end

      # A pattern compiled for matching: the kinds that each of its steps accepts. The stages of all threads share it.
      class Program
        # accepts: by step and kind: true if accepted. pattern: the Pattern.
        attr_reader :accepts, :pattern

        # @param steps [Array<Array<String>>] words of each step (Kinds)
        # @param stage [Class] the stage that matches the pattern
        # @param first [Range] steps that a match can start with
        def initialize(pattern, steps, stage, first: 0..0)
          @pattern = pattern
          @steps = steps
          @stage = stage
          @first = first
          @accepts = steps.map { [] }
        end

        # Adds a new kind.
        # @param words [Array<String>] words that patterns may use for the kind
        # @return [bool] whether a match can start with a call of this kind
        #: (Integer, Array[String]) -> bool
        def learn(kind, words)
          found = @steps.each_index.select { |at| (@steps[at] & words).any? }
          found.each { |at| @accepts[at][kind] = true }
          found.any? { |at| @first.cover?(at) }
        end

        # A new stage for a thread's chain.
        #: (Chain, Integer) -> Stage
        def stage(chain, at) = @stage.new(chain, at, self)
      end
    end
  end
end
