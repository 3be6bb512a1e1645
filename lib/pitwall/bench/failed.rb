# frozen_string_literal: true

require "pitwall/errors"

module Pitwall
  module Bench
    # What is measured could not be: it raised, never ended, or is no benchmark.
    class Failed < Error
      def status = Status::CANNOT_MEASURE
    end
  end
end
