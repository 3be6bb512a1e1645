# frozen_string_literal: true

module Pitwall
  module Collect
    # The labels of the running fiber, and the numbers of label sets in the current recording.
    #
    # It uses no Mutex, because it may run in a trap. Two threads that define the same set at once waste one number.
    # @api private
    module Labels
      # number: the set's number in one recording, from Native.label_define. The extension reads it. A fiber may hold
      #         the set longer than that recording lasts.
      # labels: {route: "orders#show"}
      Set = Struct.new(:number, :labels)

      # The fiber-local variable with the fiber's Set.
      VARIABLE = :__pitwall_labels
      # The most different sets in a recording. All further sets count as "(other)".
      MAX_SETS = 4096
      # The limit while sets name a test: a suite has more tests than a server has routes.
      MAX_TEST_SETS = 16_384
      # The most sets with "(other)", one for each combination of label names.
      MAX_OTHER_SETS = 64
      OTHER = "(other)"
      # Longest value, in characters.
      MAX_VALUE = 200
      private_constant :VARIABLE, :MAX_SETS, :MAX_TEST_SETS, :MAX_OTHER_SETS, :OTHER, :MAX_VALUE

      @sets = {}

      class << self
        # Runs the block under more labels.
        # @param labels [Hash, Set] a Set is made by `set`
        # @param marked [Boolean] whether the block is a request: the recording has its beginning and its end
        def with(labels, marked: false)
          return yield unless Session.recording? && Compat.main_ractor?

          thread = Thread.current
          before = thread[VARIABLE]
          set = under(before, labels) # first: it calls the values' to_s
          work = Queries.enter(thread) if marked
          enter(thread, set)
          counted = Native.count_work if marked # last: what this method does is not the block's
          begin
            yield
          ensure
            Queries.leave(thread, work, counted) if marked
            enter(thread, before)
          end
        end

        # Begins what `with(labels, marked: true)` does, for a caller without a block.
        # @return [Array] the argument for `leave_work`
        #: (Hash[Symbol, untyped]) -> Array[untyped]
        def enter_work(labels)
          thread = Thread.current
          before = thread[VARIABLE]
          set = under(before, labels)
          work = Queries.enter(thread)
          enter(thread, set)
          [before, work, Native.count_work]
        end

        # Ends what `enter_work` began, in the same fiber.
        #: (Array[untyped]) -> void
        def leave_work((before, work, counted))
          thread = Thread.current
          Queries.leave(thread, work, counted)
          enter(thread, before)
        end

        # Makes a Set of labels that are used often. It gets its number when it is first entered in a recording.
        #: (Hash[Symbol, untyped]) -> Set
        def set(labels) = Set.new(nil, labels.transform_values { |value| -text(value) }.freeze)

        # Changes the labels of the innermost block around, until its end.
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

        # Called before a recording begins: forgets the numbers of the last recording.
        # @return [Array<Thread>, nil] threads that have labels now
        #: () -> Array[Thread]?
        def prepare
          @sets = {}
          @other = nil
          threads = Thread.list.select { |thread| thread[VARIABLE] }
          threads unless threads.empty?
        end

        # Called when the recording has begun: gives it the labels of those threads.
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
          Compat.inherit_in_fibers(VARIABLE, set && [thread, set])
          Native.label(set)
        end

        def under(before, labels)
          return merged(before, labels) unless labels.is_a?(Set)

          before ? merged(before, labels.labels) : labels
        end

        def merged(before, labels)
          known = @sets[labels] unless before # finds labels whose values are short Strings
          return known if known && Native.label_current?(known.number)

          labels = labels.transform_values { |value| text(value) }
          labels = before.labels.merge(labels) if before
          labels.compact!
          labels.empty? ? nil : find(labels)
        end

        def text(value)
          return if value.nil?

          text = value.to_s
          text.size > MAX_VALUE ? "#{text[0, MAX_VALUE]}…" : text
        end

        def find(labels)
          known = @sets[labels]
          known && Native.label_current?(known.number) ? known : define(labels)
        end

        def define(labels)
          max = labels.key?(:test) ? MAX_TEST_SETS : MAX_SETS
          if @sets.size >= max
            Native.label_left_out
            labels = labels.transform_values { OTHER }
            known = @sets[labels] || (@other if @sets.size >= max + MAX_OTHER_SETS)
            return known if known && Native.label_current?(known.number)
          end
          labels = labels.transform_values(&:-@).freeze
          set = Set.new(Native.label_define(labels.flat_map { |name, value| [name.to_s, value] }), labels)
          @other = set if @sets.size >= max
          @sets[labels] = set
        end
      end
    end
  end
end
