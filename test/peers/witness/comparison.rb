# frozen_string_literal: true

module Witness
  # A test's outcome that differs from the plain run's. Verdicts:
  #
  # - `differs`: it differs again, alone or in the whole file. A crash, and a test or run without an end, always do.
  # - `unsteady`: runs without Pitwall differ from each other, too.
  # - `not repeated`: neither alone nor in a second run of the file.
  Difference = Struct.new(:test, :way, :plain, :recorded, :message, :verdict, :reason, keyword_init: true) do
    #: () -> bool
    def ours? = verdict == "differs"
  end

  # Compares the tests of a file under a way of recording with the plain run, test by test.
  class Comparison
    ALONE = 3
    # A process's end is no test that can be run alone.
    WHOLE = [Outcomes::ENDING, Outcomes::CRASHES].freeze

    # @yield [way, tests or nil] runs the file's tests, or only those named
    #: (Outcomes) { (String, Array[String]?) -> Outcomes } -> void
    def initialize(plain, &run)
      @plain = plain
      @run = run
    end

    #: (String, Outcomes) -> Array[Difference]
    def differences(way, recorded)
      names = @plain.differences(recorded)
      return [] if names.empty?

      again = nil
      names.map do |test|
        alone = WHOLE.include?(test) ? [] : verdicts_alone(way, test)
        verdict = alone.first
        verdict ||= "differs" if severe?(recorded[test])
        verdict ||= verdict_again(test, again ||= [@run.call("plain", nil), @run.call(way, nil)])
        message = recorded.messages[test] || @plain.messages[test]
        Difference.new(test: test, way: way, plain: @plain[test], recorded: recorded[test],
                       message: message, verdict: verdict)
      end
    end

    private

    def severe?(recorded) = ["unfinished", "absent", "time limit"].include?(recorded) || recorded.start_with?("SIG")

    def verdicts_alone(way, test)
      outcomes = ["plain", way].to_h { |which| [which, Array.new(ALONE) { @run.call(which, [test])[test] }.uniq] }
      return ["unsteady"] if outcomes["plain"].size > 1

      outcomes[way] == outcomes["plain"] ? [] : ["differs"]
    end

    def verdict_again(test, again)
      plain, recorded = again
      return "unsteady" if plain[test] != @plain[test]

      recorded[test] == plain[test] ? "not repeated" : "differs"
    end
  end
end
