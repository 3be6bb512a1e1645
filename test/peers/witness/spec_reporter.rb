# frozen_string_literal: true

require_relative "report"
require "mspec/runner/formatters/base"

# The formatter of mspec (option -f). Tells of each example of ruby/spec (report.rb).
class WitnessSpecFormatter < BaseFormatter
  def initialize(*)
    super
    @names = Hash.new(0)
  end

  def before(state)
    super
    @skips = MSpec.skips.size
    WitnessReport.tell("start", @name = name(state))
  end

  # mspec calls it without a state when a file ends.
  def after(state = nil)
    tell if state
    super
  end

  private

  def tell
    fault = @exceptions.last if exception?
    return WitnessReport.tell(failure? ? "fail" : "error", @name, fault.message) if fault

    WitnessReport.tell(MSpec.skips.size > @skips ? "skip" : "pass", @name)
  end

  # Shared examples may have the same description.
  def name(state)
    described = state.description.tr("\n", " ")
    count = @names[described] += 1
    count > 1 ? "#{described} (#{count})" : described
  end
end

CUSTOM_MSPEC_FORMATTER = WitnessSpecFormatter
