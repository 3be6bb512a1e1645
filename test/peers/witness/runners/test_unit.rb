# frozen_string_literal: true

# Loads test files that use test-unit, and tells of each test. WITNESS_FILES: the files; ARGV: test-unit's options.
require_relative "../report"
require "test/unit"

# For Test::Unit::TestCase.
module WitnessTestUnit
  def run(result)
    before = WitnessTestUnit.faults(result)
    WitnessReport.tell("start", name = "#{self.class}##{method_name}")
    super
  ensure
    fault = (WitnessTestUnit.faults(result) - before).last
    WitnessReport.tell(fault ? fault.class.name[/\w+\z/].then { |kind| WORDS.fetch(kind, "fail") } : "pass", name, fault&.message)
  end

  WORDS = { "Error" => "error", "Pending" => "skip", "Omission" => "skip" }.freeze

  def self.faults(result) = result.faults + result.pendings + result.omissions
end

Test::Unit::TestCase.prepend(WitnessTestUnit)
ENV.delete("WITNESS_FILES").split("\n").each { |file| require File.expand_path(file) }
