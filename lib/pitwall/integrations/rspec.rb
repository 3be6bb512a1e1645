# frozen_string_literal: true

require "rspec/expectations" unless defined?(RSpec::Matchers)
require_relative "budget"
require_relative "../../pitwall" unless defined?(Pitwall::Collect::Session)

module Pitwall
  # Budgets of allocation as matchers, in every example once this file is loaded:
  #
  #   require "pitwall/rspec"
  #
  #   expect { report.line(order) }.to allocate_at_most(12).objects
  #   expect { report.line(order) }.to allocate_at_most(4096).bytes
  #
  # The block runs several times (Budget.objects says how); one that can run only once: `.once`.
  module RSpecMatchers
    # @param max [Integer] of objects, unless `.bytes` follows
    #: (Integer) -> AllocateAtMost
    def allocate_at_most(max) = AllocateAtMost.new(max)

    # What RSpec asks of a matcher.
    class AllocateAtMost
      include ::RSpec::Matchers::Composable

      #: (Integer) -> void
      def initialize(max)
        @max = Budget.limit("allocate_at_most", max)
        @unit = :objects
        @how = {}
      end

      # @return [AllocateAtMost] of so many objects
      def objects = tap { @unit = :objects }

      # @return [AllocateAtMost] of so many bytes
      def bytes = tap { @unit = :bytes }

      # For a block that can't be repeated: what it loads and caches counts as well.
      # @return [AllocateAtMost]
      def once = tap { @how = { warmup: 0, runs: 1 } }

      #: (Proc) -> bool
      def matches?(block)
        raise UsageError, "a budget is of a block: expect { … }.to allocate_at_most(#{@max})" unless block.is_a?(Proc)

        @block = block
        @measured = Budget.public_send(@unit, **@how, &block)
        @measured.count <= @max
      end

      # `not_to` would make a test that fails when the code becomes better.
      #: (Proc) -> bool
      def does_not_match?(_block)
        raise UsageError, "expect { … }.not_to allocate_at_most(#{@max}): a budget has no lower end"
      end

      #: () -> bool
      def supports_block_expectations? = true

      #: () -> bool
      def supports_value_expectations? = false

      #: () -> String
      def description = "allocate at most #{Budget.number(@max)} #{@unit}"

      #: () -> String
      def failure_message = Budget.exceeded(@max, @measured, &@block)
    end
  end
end

RSpec::Matchers.include(Pitwall::RSpecMatchers)

# Each example has its name as a label while the process is recorded: `pitwall report --view tests`, doc/tests.md.
Pitwall::Collect::Tests.install(Pitwall::Collect::Tests::RSpec)
