# frozen_string_literal: true

# Runs tests that use sus, and tells of each test by its place: "test/io/event.rb:12:20". ARGV: files or places.
require_relative "../report"
require "sus/config"
config = Sus::Config.load
require "sus"

# For Sus::It. What comes of a test is added to its parent's assertions.
module WitnessIt
  LISTS = { errored: "error", failed: "fail", skipped: "skip" }.freeze

  def call(assertions)
    before = LISTS.keys.to_h { |list| [list, assertions.public_send(list).size] }
    WitnessReport.tell("start", name = "#{identity} #{description}")
    super
  ensure
    list = before && LISTS.keys.find { |one| assertions.public_send(one).size > before[one] }
    message = assertions.public_send(list).last.then { |one| one.respond_to?(:message) ? one.message : one } if list
    WitnessReport.tell(list ? LISTS[list] : "pass", name, message.inspect)
  end
end

Sus::It.prepend(WitnessIt)
registry = config.registry
assertions = Sus::Assertions.default(output: config.output, verbose: true)
config.before_tests(assertions)
registry.call(assertions)
config.after_tests(assertions)
exit(assertions.passed?)
