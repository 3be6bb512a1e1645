# frozen_string_literal: true

require "pitwall/errors"

module Pitwall
  module Bench
    # A benchmark or command cannot be measured: it raised, it took too long, or the file has no benchmark.
    class Failed < Error
      def status = Status::CANNOT_MEASURE
    end
  end
end
