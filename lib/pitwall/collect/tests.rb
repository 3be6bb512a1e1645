# frozen_string_literal: true

module Pitwall
  module Collect
    # Labels each test of minitest, RSpec and test-unit with its name, and measures its time, CPU time,
    # GC time and objects.
    #
    # One module for each framework is prepended to the framework's test class. The extension defines its `run`
    # (`test_run` in labels.c). Labelling never fails a test: a test whose name is unknown runs without a label.
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

      # The test classes, by their module here.
      CLASSES = {
        Minitest => %i[Minitest Test], RSpec => %i[RSpec Core Example], Test => %i[Test Unit TestCase]
      }.freeze
      FRAMEWORKS = CLASSES.each_value.map(&:first).freeze
      ANONYMOUS = "(anonymous)"
      private_constant :CLASSES, :FRAMEWORKS, :ANONYMOUS

      @lock = Mutex.new
      @running = 0 # tests that run now
      @begun = 0 # tests that have begun so far

      class << self
        # Labels the tests of frameworks that the program loads from now on.
        #: () -> void
        def watch = Native.watch(self, FRAMEWORKS)

        # Called by the extension when a file is about to run and a framework's constant exists.
        # @return [Boolean] whether nothing is left to do
        #: (Symbol) -> bool
        def look(name) = install(CLASSES.key(CLASSES.each_value.find { |names| names.first == name }))

        # @param labelling [Module] Tests::Minitest, Tests::RSpec or Tests::Test
        # @return [Boolean] whether tests of that framework are labelled now
        #: (Module) -> bool
        def install(labelling)
          return false unless defined?(Native) && (tests = Compat.constant(*CLASSES.fetch(labelling)))
          return true if tests.include?(labelling)

          Native.run_tests(labelling) unless labelling.method_defined?(:run, false)
          tests.prepend(labelling)
          true
        end

        # Called by the extension before a test, while the process is recorded.
        # @return [Array, nil] the argument for {#end_of}; nil: the test has no label
        #: (Object) -> Array[untyped]?
        def beginning_of(test)
          name = Compat.main_ractor? && name_of(test) or return
          work = Labels.enter_work({ test: name })
          alone, number = @lock.synchronize { [(@running += 1) == 1, @begun += 1] }
          # Objects are read last here, and first in end_of: the objects of this method are not the test's.
          [work, alone, number, Native.now, Native.thread_cpu, GC.total_time, GC.stat(:total_allocated_objects)]
        rescue StandardError
          Labels.leave_work(work) if work
          nil
        end

        # Called by the extension when the test has returned or raised.
        # @param beginning [Array] the value of {#beginning_of}
        #: (Array[untyped]) -> void
        def end_of(beginning)
          objects = GC.stat(:total_allocated_objects)
          gc = GC.total_time
          cpu = Native.thread_cpu
          work, alone, number, began, cpu_before, gc_before, objects_before = beginning
          wall = Native.now - began
          @lock.synchronize do
            @running -= 1
            alone &&= @begun == number # no test began meanwhile
          end
          # Ruby counts objects and GC time for the whole process.
          counts = alone ? [objects - objects_before, gc - gc_before] : [nil, nil]
          Native.test(wall, cpu - cpu_before, *counts)
          Labels.leave_work(work)
        rescue StandardError
          nil # an exception of the test itself is raised by the extension
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
