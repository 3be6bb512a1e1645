# frozen_string_literal: true

require "rspec/expectations" unless defined?(RSpec::Matchers)
require_relative "budget"
require_relative "invalidations"
require_relative "../../pitwall" unless defined?(Pitwall::Collect::Session)

module Pitwall
  # Matchers for the number of objects and bytes that a block allocates, and for what it changes. Every example has them
  # once this file is loaded:
  #
  #   require "pitwall/rspec"
  #
  #   expect { report.line(order) }.to allocate_at_most(12).objects
  #   expect { report.line(order) }.to allocate_at_most(4096).bytes
  #
  # The block runs several times (see Budget.objects). A block that can run only once needs `.once`.
  module RSpecMatchers
    # @param max [Integer] number of objects; with `.bytes`, number of bytes
    #: (Integer) -> AllocateAtMost
    def allocate_at_most(max) = AllocateAtMost.new(max)

    # Matches a block that changes a constant, a method or a class, or what else empties caches of the VM
    # (doc/caches.md). The block runs once to warm up, then once more while it is recorded.
    #
    #   expect { app.call(env) }.not_to invalidate_caches
    #   expect { app.call(env) }.not_to invalidate_caches(allow: [:singleton_class_made, "Shop::*"]).once
    #
    # @param allow [Symbol, String, Regexp, Array] changes that do not count: kinds, or subjects (* in a String stands
    #   for any characters)
    #: (?allow: untyped) -> InvalidateCaches
    def invalidate_caches(allow: []) = InvalidateCaches.new(allow)

    # A matcher as RSpec defines it.
    class InvalidateCaches
      include ::RSpec::Matchers::Composable

      #: (untyped) -> void
      def initialize(allow)
        @options = { allow: allow }
      end

      # For a block that can't be repeated. What it loads and defines at its first run counts as well.
      # @return [InvalidateCaches] self
      def once = tap { @options[:warmup] = 0 }

      # @raise [StateError] a recording is running
      #: (Proc) -> bool
      def matches?(block)
        block = nil unless block.is_a?(Proc)
        @changes = Invalidations.of("invalidate_caches", **@options, &block)
        @changes.any?
      end

      #: () -> bool
      def supports_block_expectations? = true

      #: () -> bool
      def supports_value_expectations? = false

      #: () -> String
      def description = "invalidate caches"

      #: () -> String
      def failure_message = "Expected a change that empties caches of the VM, but there was none."

      #: () -> String
      def failure_message_when_negated = Invalidations.message(@changes)
    end

    # A matcher as RSpec defines it.
    class AllocateAtMost
      include ::RSpec::Matchers::Composable

      #: (Integer) -> void
      def initialize(max)
        @max = Budget.limit("allocate_at_most", max)
        @unit = :objects
        @options = {}
      end

      # The limit is a number of objects.
      # @return [AllocateAtMost] self
      def objects = tap { @unit = :objects }

      # The limit is a number of bytes.
      # @return [AllocateAtMost] self
      def bytes = tap { @unit = :bytes }

      # For a block that can't be repeated. Objects that it loads and caches count as well.
      # @return [AllocateAtMost] self
      def once = tap { @options = { warmup: 0, runs: 1 } }

      #: (Proc) -> bool
      def matches?(block)
        raise UsageError, "a budget is of a block: expect { … }.to allocate_at_most(#{@max})" unless block.is_a?(Proc)

        @block = block
        @measured = Budget.public_send(@unit, **@options, &block)
        @measured.count <= @max
      end

      # Refuses `not_to`: such a test would fail when the code becomes better.
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

# While the process is recorded, each example's name is a label: `pitwall report --view tests` (doc/tests.md).
Pitwall::Collect::Tests.install(Pitwall::Collect::Tests::RSpec)
