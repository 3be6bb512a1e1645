# frozen_string_literal: true

module Pitwall
  module Collect
    # Which labels the running fiber works under, and the numbers that a recording knows them by.
    #
    # Uses no Mutex: it may run in a trap. What threads could do at once costs a number that is not needed.
    # @api private
    module Labels
      # A set of labels, and the number that Native.label_define gave it: it is of one recording, and a fiber may hold the set longer.
      # The extension reads the number.
      Set = Struct.new(:number, :labels)

      # Of the running fiber.
      VARIABLE = :__pitwall_labels
      # Different sets in a recording; what comes then is counted together.
      MOST = 4096
      # The same of sets that name a test: a suite has more tests than a server has routes.
      MOST_TESTS = 16_384
      # Combinations of names beyond that.
      OTHERS = 64
      OTHER = "(other)"
      # Characters of a value.
      LONGEST = 200
      private_constant :VARIABLE, :MOST, :MOST_TESTS, :OTHERS, :OTHER, :LONGEST

      @sets = {}

      class << self
        # Runs the block under more labels: a Hash, or what `set` made of one. @param marked whether the block is a piece of work with a
        # beginning and an end
        def with(labels, marked: false)
          return yield unless Session.recording? && Compat.main_ractor?

          thread = Thread.current
          before = thread[VARIABLE]
          work = Queries.enter(thread) if marked
          enter(thread, under(before, labels))
          begin
            yield
          ensure
            Queries.leave(thread, work) if marked
            enter(thread, before)
          end
        end

        # What `with` does with marked work, for a caller that can't give a block. @return [Array] for `leave_work`
        #: (Hash[Symbol, untyped]) -> Array[untyped]
        def enter_work(labels)
          thread = Thread.current
          before = thread[VARIABLE]
          work = Queries.enter(thread)
          enter(thread, under(before, labels))
          [before, work]
        end

        # In the same fiber.
        #: (Array[untyped]) -> void
        def leave_work((before, work))
          thread = Thread.current
          Queries.leave(thread, work)
          enter(thread, before)
        end

        # Labels that are used again and again, for `with`. In each recording they get their number when they are first entered.
        #: (Hash[Symbol, untyped]) -> Set
        def set(labels) = Set.new(nil, labels.transform_values { |value| -text(value) }.freeze)

        # Changes what the innermost block around runs under, until its end.
        def change(labels)
          return unless Session.recording? && Compat.main_ractor?

          thread = Thread.current
          before = thread[VARIABLE] and enter(thread, merged(before, labels))
          nil
        end

        #: () -> Hash[Symbol, String]
        def current
          set = Thread.current[VARIABLE]
          set ? set.labels : {}
        end

        # A recording is about to begin: no numbers are known.
        # @return [Array<Thread>, nil] those that are in the middle of something
        #: () -> Array[Thread]?
        def prepare
          @sets = {}
          @other = nil
          threads = Thread.list.select { |thread| thread[VARIABLE] }
          threads unless threads.empty?
        end

        # It has begun.
        #: (Array[Thread]) -> void
        def resume(threads)
          threads.each do |thread|
            set = thread[VARIABLE] or next
            Native.label_thread(thread, set)
            redo unless thread[VARIABLE].equal?(set) || !thread.alive?
          end
        end

        # Gives a set its number in this recording. Called by the extension.
        #: (Set) -> Integer
        def again(set) = set.number = find(set.labels).number

        private

        def enter(thread, set)
          thread[VARIABLE] = set
          Compat.leave_to_fibers(VARIABLE, set && [thread, set])
          Native.label(set)
        end

        def under(before, labels)
          return merged(before, labels) unless labels.is_a?(Set)

          before ? merged(before, labels.labels) : labels
        end

        def merged(before, labels)
          known = @sets[labels] unless before # as they are: short strings
          return known if known && Native.label_current?(known.number)

          labels = labels.transform_values { |value| text(value) }
          labels = before.labels.merge(labels) if before
          labels.compact!
          labels.empty? ? nil : find(labels)
        end

        def text(value)
          return if value.nil?

          text = value.to_s
          text.size > LONGEST ? "#{text[0, LONGEST]}…" : text
        end

        def find(labels)
          known = @sets[labels]
          known && Native.label_current?(known.number) ? known : define(labels)
        end

        def define(labels)
          most = labels.key?(:test) ? MOST_TESTS : MOST
          if @sets.size >= most
            Native.label_left_out
            labels = labels.transform_values { OTHER }
            known = @sets[labels] || (@other if @sets.size >= most + OTHERS)
            return known if known && Native.label_current?(known.number)
          end
          labels = labels.transform_values(&:-@).freeze
          set = Set.new(Native.label_define(labels.flat_map { |name, value| [name.to_s, value] }), labels)
          @other = set if @sets.size >= most
          @sets[labels] = set
        end
      end
    end
  end
end
