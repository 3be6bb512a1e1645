# frozen_string_literal: true

require "pitwall/analyse/syscalls/kinds"

module Pitwall
  module Analyse
    module Syscalls
      # What a stage made of several calls. at: the pattern's number; path: what it is about (of a scan, the last one); count: calls absorbed; ns: theirs, or nil;
      # nodes: { their stacks' node => [calls, ns] }, or nil.
      Marker = Struct.new(:at, :path, :count, :ns, :nodes)

      # The passes of one thread, all at once: each stage reads what the one before it lets through. A call goes straight to the first stage that
      # could begin with it or that holds calls back; most stages see few. What no stage absorbs goes to the sink, in order.
      class Chain
        # Bits → the number of the lowest, for as many patterns as the study's and some more.
        LOWEST = Array.new(1 << 10) { |bits| bits.zero? ? nil : (bits & -bits).bit_length - 1 }.freeze
        private_constant :LOWEST

        # Stages that hold something, a bit for each.
        attr_accessor :busy

        # @param sink answers rest(call, kind) and marker(marker)
        #: (Array[Program], Kinds, untyped) -> void
        def initialize(programs, kinds, sink)
          @wants = kinds.wants
          @sink = sink
          @busy = 0
          @stages = programs.each_with_index.map { |program, at| program.stage(self, at) }
        end

        # Hands a call on to the stages from number `from`.
        #: (Record::Syscall, Integer, ?Integer) -> void
        def route(call, kind, from = 0)
          mask = (@wants[kind] | @busy) >> from
          if mask == 0 # an operator, no call: most of a long log comes by here
            kind == Kinds::MARKER ? @sink.marker(call) : @sink.rest(call, kind)
          else
            @stages[from + (LOWEST[mask] || (mask & -mask).bit_length - 1)].call(call, kind)
          end
        end

        # A stage absorbed calls; later ones see a marker.
        #: (Marker, Integer) -> void
        def mark(marker, from) = route(marker, Kinds::MARKER, from)

        # The log has ended: what is held back is decided, stage by stage.
        #: () -> void
        def finish = @stages.each(&:finish)
      end

      # What stages share: absorbed calls' time and stacks.
      class Stage
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

        def note(call)
          @ns = @ns.to_i + call.ns if call.ns
          Stage.add(@nodes ||= {}, call) if call.node
        end

        # The end of a run of `@count` calls: a marker, or too few for one, and the calls held back go on.
        def settle(label)
          held, @held = @held, []
          return @chain.mark(Marker.new(@at, label, @count, @ns, @nodes), @next) if @count >= @least

          at = -2
          @chain.route(held[at], held[at + 1], @next) while (at += 2) < held.size
        end

        # From a list of calls.
        def marker_of(calls, label)
          ns = nodes = nil
          calls.each do |call|
            ns = ns.to_i + call.ns if call.ns
            Stage.add(nodes ||= {}, call) if call.node
          end
          @chain.mark(Marker.new(@at, label, calls.size, ns, nodes), @next)
        end
      end

      # A pattern made ready to run: which kinds each of its steps takes. Stages of all threads share it.
      class Program
        # By step: kind → true.
        attr_reader :accepts, :pattern

        # @param steps [Array<Array<String>>] words of each step
        # @param first [Range] steps that a match can begin with
        def initialize(pattern, steps, stage, first: 0..0)
          @pattern = pattern
          @steps = steps
          @stage = stage
          @first = first
          @accepts = steps.map { [] }
        end

        # @return whether a match can begin with such a call
        #: (Integer, Array[String]) -> bool
        def learn(kind, words)
          found = @steps.each_index.select { |at| (@steps[at] & words).any? }
          found.each { |at| @accepts[at][kind] = true }
          found.any? { |at| @first.cover?(at) }
        end

        #: (Chain, Integer) -> Stage
        def stage(chain, at) = @stage.new(chain, at, self)
      end
    end
  end
end
