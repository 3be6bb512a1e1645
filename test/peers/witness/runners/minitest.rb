# frozen_string_literal: true

# Loads test files that use minitest, and tells of each test. WITNESS_FILES: the files; ARGV: minitest's options.
require_relative "../report"
require "minitest"

# For Minitest::Test.
module WitnessMinitest
  def run
    name = "#{self.class}##{self.name}"
    WitnessReport.tell("start", name)
    result = super
    failure = result.respond_to?(:failure) ? result.failure : nil
    WitnessReport.tell(WitnessMinitest.outcome(failure), name, failure && "#{failure.result_label}: #{failure.message}")
    result
  end

  def self.outcome(failure)
    case failure
    when nil then "pass"
    when Minitest::Skip then "skip"
    when Minitest::UnexpectedError then "error"
    else "fail"
    end
  end
end

Minitest::Test.prepend(WitnessMinitest)
require "minitest/autorun"
ENV.delete("WITNESS_FILES").split("\n").each { |file| require File.expand_path(file) }
