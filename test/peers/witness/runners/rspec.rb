# frozen_string_literal: true

# Runs specs, and tells of each example by its id: "./spec/a_spec.rb[1:2]". ARGV: rspec's words;
# WITNESS_WITHOUT: a regular expression of descriptions to leave out.
require_relative "../report"
require "rspec/core"

# What RSpec calls.
class WitnessFormatter
  RSpec::Core::Formatters.register self, :example_started, :example_passed, :example_failed, :example_pending

  def initialize(output)
    @output = output
    @names = {}
  end

  def example_started(notification) = tell("start", notification.example)
  def example_passed(notification) = tell("pass", notification.example)
  def example_pending(notification) = tell("skip", notification.example)

  def example_failed(notification)
    error = notification.exception
    failed = error.class.name.to_s.start_with?("RSpec::")
    tell(failed ? "fail" : "error", notification.example, "#{error.class}: #{error.message}")
  end

  private

  # An example without a description has one of its matcher's when it has run.
  def name(example) = @names[example.id] ||= "#{example.id} #{example.full_description}"
  def tell(word, example, message = nil) = WitnessReport.tell(word, name(example), message)
end

without = ENV.delete("WITNESS_WITHOUT")
RSpec.configuration.filter_run_excluding(full_description: Regexp.new(without)) if without
exit RSpec::Core::Runner.run(ARGV + ["--order", "defined", "--format", "WitnessFormatter", "--format", "documentation"])
