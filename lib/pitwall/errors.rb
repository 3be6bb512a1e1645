# frozen_string_literal: true

module Pitwall
  # Exit statuses of the command. They are the same for every verb (README, "Exit status").
  module Status
    OK = 0
    WORSE = 1
    USAGE = 2
    UNDECIDED = 3
    CANNOT_MEASURE = 4
    BAD_RECORDING = 5
  end

  # A failure that the user can correct. The message is one line: the file, option or limit, and the correction.
  # `status` is the command's exit status.
  class Error < StandardError
    # Advice that the command adds to the message: {salvage: nil}, {budget: 60}. A key is a key of CLI::ADVICE, which
    # has the words; a value goes into the words. The message itself names no option, because callers of the library
    # type none.
    # @return [Hash{Symbol => Object}]
    # @api private
    attr_reader :advice

    #: (?String?, ?advice: Hash[Symbol, untyped]) -> void
    def initialize(message = nil, advice: {})
      super(message)
      @advice = advice
    end

    def status = Status::USAGE
  end

  # An unknown option, a missing argument, a value out of range.
  class UsageError < Error; end

  # A call that does not fit the state: a collector is started twice, or stopped while it does not run.
  class StateError < Error; end

  # This machine, this Ruby or the state of the process does not allow the measurement.
  class CannotMeasure < Error
    def status = Status::CANNOT_MEASURE
  end

  # A recording that is damaged, of another kind, or newer than this reader.
  class BadRecording < Error
    def status = Status::BAD_RECORDING
  end
end
