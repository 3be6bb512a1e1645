# frozen_string_literal: true

require "pitwall/analyse/syscalls/chain"

module Pitwall
  module Analyse
    module Syscalls
      # Exactly these calls on one path, each once. Matches from the left, and the earliest match wins.
      class ExactSequence < Stage
        def initialize(*)
          super
          @last = @accepts.size
          @first = @accepts[0]
          @calls = []
          @kinds = []
          @done = 0
        end

        # Takes the thread's next call.
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

        # Ends the log.
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

        # No match starts with the first held call. A later held call, or the new call, may start one.
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

        # Passes on the first held call, and matches the others again.
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

      # Calls in a given order, on one or several paths.
      # A step matches once, or as often as possible with `+`, `*` or `?`. With `!` the call must have failed.
      # A step has the name of its path (`:b`). Calls of steps with the same name have the same path.
      # The pattern may have an expression for this path.
      class Sequence < Stage
        # A step of a sequence.
        #
        # words:       words of accepted calls
        # least, most: number of repetitions
        # variable:    name of its path
        # fails:       whether the call must have failed
        Step = Struct.new(:words, :least, :most, :variable, :fails)
        # Most calls that are held.
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

        # Takes the thread's next call.
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

        # Ends the log.
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

        # Whether the held calls are a whole match, although more calls could have been added.
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
          # All calls of a repeated first step fail for the same reason, so none of them is matched again.
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
