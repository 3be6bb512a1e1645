# frozen_string_literal: true

module Witness
  # What became of the tests of one run: name => "pass", "fail", "error", "skip" or "unfinished"; and of its processes.
  class Outcomes
    # Names of what is no test.
    ENDING = "(the process's end)"
    CRASHES = "(crashes reported)"

    attr_reader :tests, :messages, :seconds

    # @param report [String] lines of the reporter: word, test, message
    # @param ending [String] "exit", "SIGSEGV", "time limit"
    # @param output [String] both streams
    #: (report: String, ending: String, output: String, seconds: Float) -> void
    def initialize(report:, ending:, output:, seconds:)
      @tests = {}
      @messages = {}
      @seconds = seconds
      report.each_line(chomp: true) do |line|
        word, name, message = line.split("\t", 3)
        @tests[name] = word == "start" ? "unfinished" : word
        @messages[name] = message unless message.to_s.empty?
      end
      @tests[ENDING] = ending
      @tests[CRASHES] = output.scan(/^.*\[BUG\].*$/).size.to_s
      @messages[CRASHES] = output[/^.*\[BUG\].*$/]
    end

    #: (String) -> String
    def [](name) = tests.fetch(name, "absent")

    #: () -> Integer
    def size = tests.size - 2

    #: (Outcomes) -> Array[String]  names of the tests with another outcome
    def differences(other) = (tests.keys | other.tests.keys).reject { |name| self[name] == other[name] }
  end
end
