# frozen_string_literal: true

require "pitwall/record/malformed"

module Pitwall
  module Record
    # How many entries all segments of one file may still add to their tables. The chunk types declare the limits.
    # @api private
    class Budget
      # @param limits [Hash{Symbol => Integer}] by name, e.g. {strings: 4_000_000}
      #: (Hash[Symbol, Integer]) -> void
      def initialize(limits)
        @left = limits.dup
      end

      #: (Symbol, Integer) -> bool
      def room?(name, count) = @left[name] >= count

      # Takes room for `count` entries, before they are kept.
      # @raise [Malformed] when there is no room
      #: (Symbol, Integer) -> void
      def take(name, count)
        raise Malformed, "goes past the limit for #{name.to_s.tr("_", " ")}" if (@left[name] -= count).negative?
      end
    end
    private_constant :Budget
  end
end
