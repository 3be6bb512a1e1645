# frozen_string_literal: true

require "minitest/assertions" unless defined?(Minitest::Assertions)
require_relative "budget"
require_relative "../../pitwall" unless defined?(Pitwall::Collect::Session)

module Pitwall
  # Budgets of allocation as assertions, in every test case once this file is loaded:
  #
  #   require "pitwall/minitest"
  #
  #   def test_a_line_of_the_report_is_cheap
  #     assert_allocations(max: 12) { @report.line(@order) }
  #     assert_allocated_bytes(max: 4096) { @report.line(@order) }
  #   end
  #
  # The block runs several times (Budget.objects says how); one that can run only once takes `warmup: 0, runs: 1`.
  module MinitestAssertions
    # Fails when the block allocates more than `max` objects, and says from where. Returns how many it allocates.
    # @raise [UsageError] without a block, or a `max` that is no number of objects
    #: (max: Integer, ?runs: Integer, ?warmup: Integer) { () -> void } -> Integer
    def assert_allocations(max:, **how, &block) = assert_budget(:objects, max, how, block)

    # Fails when the objects that the block allocates take more than `max` bytes, and says from where. Returns how many they take.
    # @raise [UsageError] without a block, or a `max` that is no number of bytes
    #: (max: Integer, ?runs: Integer, ?warmup: Integer) { () -> void } -> Integer
    def assert_allocated_bytes(max:, **how, &block) = assert_budget(:bytes, max, how, block)

    private

    def assert_budget(unit, max, how, block)
      Budget.limit("max:", max)
      raise UsageError, "a budget is of a block: assert_allocations(max: #{max}) { … }" unless block

      measured = Budget.public_send(unit, **how, &block)
      assert(measured.count <= max, -> { Budget.exceeded(max, measured, &block) })
      measured.count
    end
  end
end

Minitest::Assertions.include(Pitwall::MinitestAssertions)

# Each test has its name as a label while the process is recorded: `pitwall report --view tests`, doc/tests.md.
require "minitest" unless defined?(Minitest::Test)
Pitwall::Collect::Tests.install(Pitwall::Collect::Tests::Minitest)
