# frozen_string_literal: true

require "pitwall/analyse/syscalls/chain"

module Pitwall
  module Analyse
    module Syscalls
      # Exactly these calls on one path, each once, greedy from the left.
      class ExactSequence < Stage
        def initialize(*)
          super
          @last = @accepts.size
          @first = @accepts[0]
          @calls = []
          @kinds = []
          @done = 0
        end

        #: (Record::Syscall, Integer) -> void
        def call(call, kind)
          done = @done
          if done.zero?
            return @chain.route(call, kind, @next) unless @first[kind] && (@path = call.path)

            @chain.busy |= @bit
          elsif !@accepts[done][kind] || call.path != @path
            return retry_with(call, kind)
          end
          @calls[done] = call
          @kinds[done] = kind
          complete if (@done = done + 1) == @last
        end

        # The log has ended.
        #: () -> void
        def finish
          give_back while @done.positive?
        end

        private

        def complete
          calls = @calls
          @calls = []
          @done = 0
          @chain.busy &= ~@bit
          marker_of(calls, @path)
        end

        # No match begins with the first of those held; the call may begin one.
        def retry_with(call, kind)
          if @done == 1
            first = @calls[0]
            first_kind = @kinds[0]
            if @first[kind] && (@path = call.path)
              @calls[0] = call
              @kinds[0] = kind
              return @chain.route(first, first_kind, @next)
            end
            @done = 0
            @chain.busy &= ~@bit
            @chain.route(first, first_kind, @next)
            return @chain.route(call, kind, @next)
          end
          give_back
          call(call, kind)
        end

        # The first of those held goes on, and the others try again.
        def give_back
          count = @done
          calls = @calls
          kinds = @kinds
          @calls = []
          @kinds = []
          @done = 0
          @chain.busy &= ~@bit
          @chain.route(calls[0], kinds[0], @next)
          at = 1
          while at < count
            @done.zero? && !@first[kinds[at]] ? @chain.route(calls[at], kinds[at], @next) : call(calls[at], kinds[at])
            at += 1
          end
        end
      end

      # Calls in an order: each step once, or `+`, `*`, `?` times as often as it goes; each on a path by name, which must fit its expression where the pattern
      # has one; `!` only if the call failed.
      class Sequence < Stage
        # A step: words it takes; how often; the name of its path; whether it must fail.
        Step = Struct.new(:words, :least, :most, :variable, :fails)
        # Calls held back at most.
        MOST = 512
        private_constant :MOST

        def initialize(chain, at, program)
          super
          @steps = program.pattern.steps
          @leading = @steps.index { |step| step.least.positive? }
          @paths = program.pattern.paths
          @held = []
          @kinds = []
          @bound = {}
          reset
        end

        #: (Record::Syscall, Integer) -> void
        def call(call, kind)
          if @held.empty?
            first = 0
            until takes?(@steps[first], first, call, kind)
              return @chain.route(call, kind, @next) if (first += 1) > @leading
            end
            @step = first
            hold
            take(call, kind)
          else
            advance(call, kind)
          end
        end

        # The log has ended.
        #: () -> void
        def finish
          until @held.empty?
            over? ? complete : give_back
          end
        end

        private

        def reset
          @step = 0
          @taken = 0
          @bound.clear
        end

        def takes?(step, at, call, kind)
          return false unless @accepts[at][kind] && call.path
          return false if step.fails && (call.errno.nil? || call.errno.zero?)

          bound = @bound[step.variable]
          return bound == call.path if bound

          expression = @paths[step.variable]
          expression.nil? || expression.match?(call.path)
        end

        def take(call, kind)
          step = @steps[@step]
          @bound[step.variable] ||= call.path
          @held << call
          @kinds << kind
          @taken += 1
          return if @taken < step.most

          @step += 1
          @taken = 0
          complete if @step == @steps.size
        end

        def advance(call, kind)
          while (step = @steps[@step])
            return take(call, kind) if takes?(step, @step, call, kind) && @held.size < MOST
            break if @taken < step.least

            @step += 1
            @taken = 0
          end
          step ? give_back : complete
          again(call, kind)
        end

        # Whether what is held is a whole match, though more could have come.
        def over? = @steps[@step..].each_with_index.all? { |step, at| (at.zero? ? @taken : 0) >= step.least }

        def complete
          calls, @held = @held, []
          @kinds.clear
          label = @bound[@steps[0].variable]
          label = @bound[@program.pattern.label_of] || label
          reset
          release
          marker_of(calls, label)
        end

        def give_back
          calls, @held = @held, []
          kinds, @kinds = @kinds, []
          # All of a first step that goes on and on fail for the same reason.
          first = @step <= @leading && @taken == calls.size ? calls.size : 1
          reset
          release
          at = -1
          size = calls.size
          while (at += 1) < size
            at < first ? @chain.route(calls[at], kinds[at], @next) : again(calls[at], kinds[at])
          end
        end

        def again(call, kind)
          @held.empty? && kind.zero? ? @chain.route(call, kind, @next) : call(call, kind)
        end
      end
    end
  end
end
