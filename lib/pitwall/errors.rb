# frozen_string_literal: true

module Pitwall
  # Exit statuses of the command, the same for every verb (README, "Exit status").
  module Status
    OK = 0
    WORSE = 1
    USAGE = 2
    UNDECIDED = 3
    CANNOT_MEASURE = 4
    BAD_RECORDING = 5
  end

  # Every failure a user can mend: one line that names the file, option or limit, and the mend.
  # `status` is what the command exits with.
  class Error < StandardError
    def status = Status::USAGE
  end

  # Unknown options, missing arguments, values out of range.
  class UsageError < Error; end

  # A collector was started twice, stopped while not running, and the like.
  class StateError < Error; end

  # This machine, Ruby or process state does not allow the measurement.
  class CannotMeasure < Error
    def status = Status::CANNOT_MEASURE
  end

  # A recording that is damaged, of another kind, or newer than this reader.
  class BadRecording < Error
    def status = Status::BAD_RECORDING
  end
end
