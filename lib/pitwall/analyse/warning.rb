# frozen_string_literal: true

module Pitwall
  module Analyse
    # A reason to doubt a measurement. The values are for any output, not only the terminal.
    #
    # kind:    Symbol: :not_steady, :host_busy, :outlier… (MeasurementWarnings lists them)
    # subject: name of the benchmark case, or nil for the whole measurement
    # text:    one line that says what happened
    # hint:    one line that says what to try, with the option's name where an option helps
    Warning = Struct.new(:kind, :subject, :text, :hint)
  end
end
