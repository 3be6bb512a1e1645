# frozen_string_literal: true

require "pitwall/doctor/check"
require "pitwall/doctor/host"
require "pitwall/doctor/output"
require "pitwall/doctor/ruby"
require "pitwall/doctor/timing"
require "pitwall/doctor/tools"
require "pitwall/doctor/trial"

module Pitwall
  # Checks what can be measured with this machine, container, kernel and Ruby. Where possible a check tries the feature.
  class Doctor
    #: (?trials: Array[Trial], ?streams: Hash[String, IO]) -> void
    # @param trials [Array<Trial>] profiles of a small program, one for each Ruby
    # @param streams [Hash] name → stream; each stream's terminal is checked
    def initialize(trials: Trial.rubies, streams: { "standard error" => $stderr, "standard output" => $stdout })
      @trials = trials
      @streams = streams
    end

    # All checks, in the order in which reports show them.
    #: () -> Array[Check]
    def checks
      @checks ||= @trials.flat_map { |trial| Ruby.checks(trial) } +
                  Timing.checks + Host.checks + Output.checks(@streams) + Tools.checks
    end

    # Whether a verb such as "profile" works here: "works", "limited" or "no".
    #: (String) -> String
    def verdict(command)
      states = checks.select { |check| check.affects.include?(command) }.map(&:state)
      return "no" if states.include?(:no)

      states.include?(:limited) ? "limited" : "works"
    end

    # The verbs that doctor judges.
    #: () -> Array[String]
    def commands = %w[profile syscalls]

    # The JSON object, `pitwall/doctor-1`.
    #: () -> Hash[String, untyped]
    def to_h
      {
        "schema" => "pitwall/doctor-1",
        "version" => VERSION,
        "commands" => commands.to_h do |command|
          limits = checks.select { |check| check.affects.include?(command) && check.restricts? }
          [command, { "verdict" => verdict(command), "limits" => limits.map(&:name) }]
        end,
        "checks" => checks.map(&:to_h)
      }
    end
  end
end
