# frozen_string_literal: true

module Pitwall
  module Analyse
    # Something to know before believing a measurement; data, not text for a terminal.
    #
    # kind:    Symbol: :not_steady, :host_busy, :outlier… (MeasurementWarnings lists them)
    # subject: the case it is about, or nil for the whole measurement
    # text:    one line for people
    # hint:    one line, what to try; names an option where one helps
    Warning = Struct.new(:kind, :subject, :text, :hint)
  end
end
