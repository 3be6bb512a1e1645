# frozen_string_literal: true

require "minitest/assertions" unless defined?(Minitest::Assertions)
require_relative "budget"
require_relative "invalidations"
require_relative "../../pitwall" unless defined?(Pitwall::Collect::Session)

module Pitwall
  # Assertions on the number of objects and bytes that a block allocates, and on what it changes. Every test case has
  # them once this file is loaded:
  #
  #   require "pitwall/minitest"
  #
  #   def test_a_line_of_the_report_is_cheap
  #     assert_allocations(max: 12) { @report.line(@order) }
  #     assert_allocated_bytes(max: 4096) { @report.line(@order) }
  #   end
  #
  # The block runs several times (see Budget.objects). A block that can run only once needs `warmup: 0, runs: 1`.
  module MinitestAssertions
    # Fails if the block allocates more than `max` objects. The message names the places.
    # @return [Integer] number of objects
    # @raise [UsageError] there is no block, or `max` is no number of objects
    #: (max: Integer, ?runs: Integer, ?warmup: Integer) { () -> void } -> Integer
    def assert_allocations(max:, **options, &block) = assert_budget(:objects, max, options, block)

    # Fails if the objects that the block allocates take more than `max` bytes. The message names the places.
    # @return [Integer] number of bytes
    # @raise [UsageError] there is no block, or `max` is no number of bytes
    #: (max: Integer, ?runs: Integer, ?warmup: Integer) { () -> void } -> Integer
    def assert_allocated_bytes(max:, **options, &block) = assert_budget(:bytes, max, options, block)

    # Fails if the block changes a constant, a method or a class, or what else empties caches of the VM (doc/caches.md).
    # The message names kind, subject and line. The block runs once to warm up, then once more while it is recorded.
    #
    #   assert_no_invalidations { @app.call(env) }
    #   assert_no_invalidations(allow: [:singleton_class_made, "Shop::*"], warmup: 0) { … }
    #
    # @param allow [Symbol, String, Regexp, Array] changes that do not count: kinds, or subjects (* in a String stands
    #   for any characters)
    # @return [true]
    # @raise [StateError] a recording is running
    # @raise [UsageError] there is no block, or no such kind
    # @raise [CannotMeasure] the gem pitwall is missing
    #: (?allow: untyped, ?warmup: Integer) { () -> void } -> true
    def assert_no_invalidations(**options, &block)
      changes = Invalidations.of("assert_no_invalidations", **options, &block)
      assert(changes.empty?, -> { Invalidations.message(changes) })
    end

    private

    def assert_budget(unit, max, options, block)
      Budget.limit("max:", max)
      raise UsageError, "a budget is of a block: assert_allocations(max: #{max}) { … }" unless block

      measured = Budget.public_send(unit, **options, &block)
      assert(measured.count <= max, -> { Budget.exceeded(max, measured, &block) })
      measured.count
    end
  end
end

Minitest::Assertions.include(Pitwall::MinitestAssertions)

# While the process is recorded, each test's name is a label: `pitwall report --view tests` (doc/tests.md).
require "minitest" unless defined?(Minitest::Test)
Pitwall::Collect::Tests.install(Pitwall::Collect::Tests::Minitest)
