# frozen_string_literal: true

module Pitwall
  module Collect
    # Labels each test of minitest, RSpec and test-unit with its name, and counts what the test takes.
    #
    # A module of each framework is prepended to its class of tests. Its `run` is the extension's (`test_run` in
    # labels.c). Labelling never fails a test: a test whose name can't be told runs without a label.
    # @api private
    module Tests
      # Prepended to Minitest::Test: `run` is one test with its setup and teardown.
      module Minitest
      end

      # Prepended to RSpec::Core::Example: `run` is one example with its hooks.
      module RSpec
      end

      # Prepended to Test::Unit::TestCase: `run` is one test with its setup and teardown.
      module Test
      end

      # Where the classes are.
      CLASSES = {
        Minitest => %i[Minitest Test], RSpec => %i[RSpec Core Example], Test => %i[Test Unit TestCase]
      }.freeze
      FRAMEWORKS = CLASSES.each_value.map(&:first).freeze
      ANONYMOUS = "(anonymous)"
      private_constant :CLASSES, :FRAMEWORKS, :ANONYMOUS

      @lock = Mutex.new
      @running = 0 # tests at this time
      @begun = 0 # tests so far

      class << self
        # Labels tests of the frameworks that the program loads from now on.
        #: () -> void
        def watch = Native.watch(self, FRAMEWORKS)

        # Called by the extension when a file is about to run and a framework's constant exists.
        # @return [Boolean] is there nothing more to do?
        #: (Symbol) -> bool
        def look(name) = install(CLASSES.key(CLASSES.each_value.find { |names| names.first == name }))

        # @param labelling [Module] Tests::Minitest, Tests::RSpec or Tests::Test
        # @return [Boolean] are tests of that framework labelled now?
        #: (Module) -> bool
        def install(labelling)
          return false unless defined?(Native) && (tests = Compat.constant(*CLASSES.fetch(labelling)))
          return true if tests.include?(labelling)

          Native.run_tests(labelling) unless labelling.method_defined?(:run, false)
          tests.prepend(labelling)
          true
        end

        # Called by the extension before a test, while the process is recorded.
        # @return [Array, nil] for end_of; nil: the test has no label
        #: (Object) -> Array[untyped]?
        def beginning_of(test)
          name = Compat.main_ractor? && name_of(test) or return
          work = Labels.enter_work({ test: name })
          alone, number = @lock.synchronize { [(@running += 1) == 1, @begun += 1] }
          # Objects last here and first at the end: what is done here is no test's.
          [work, alone, number, Native.now, Native.thread_cpu, GC.total_time, GC.stat(:total_allocated_objects)]
        rescue StandardError
          Labels.leave_work(work) if work
          nil
        end

        # The extension calls it when the test has returned or raised, with what {#beginning_of} gave.
        #: (Array[untyped]) -> void
        def end_of(beginning)
          objects = GC.stat(:total_allocated_objects)
          gc = GC.total_time
          cpu = Native.thread_cpu
          work, alone, number, began, cpu_before, gc_before, objects_before = beginning
          took = Native.now - began
          @lock.synchronize do
            @running -= 1
            alone &&= @begun == number # no test began meanwhile
          end
          known = alone ? [objects - objects_before, gc - gc_before] : [nil, nil]
          Native.test(took, cpu - cpu_before, *known)
          Labels.leave_work(work)
        rescue StandardError
          nil # what the test raised, if it did, goes on
        end

        private

        def name_of(test)
          case test
          when Minitest then "#{test.class.name || ANONYMOUS}##{test.name}"
          when RSpec
            described = !test.metadata[:description].empty?
            described ? +test.full_description : "#{test.full_description.strip} (#{test.location})"
          when Test then "#{test.class.name || ANONYMOUS}##{test.name.delete_suffix("(#{test.class.name})")}"
          end
        end
      end
    end
  end
end
