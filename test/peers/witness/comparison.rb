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
    # So many runs more, where those under recording differ from each other.
    MORE = 12
    # A process's end is no test that can be run alone.
    WHOLE = [Outcomes::ENDING, Outcomes::CRASHES].freeze

    # @param more [Integer] see MORE
    # @yield [way, tests or nil] runs the file's tests, or only those named
    #: (Outcomes, ?more: Integer) { (String, Array[String]?) -> Outcomes } -> void
    def initialize(plain, more: MORE, &run)
      @plain = plain
      @more = more
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
        verdict = "differs" if severe?(recorded[test]) && verdict != "unsteady"
        verdict ||= verdict_again(test, again ||= [@run.call("plain", nil), @run.call(way, nil)])
        message = recorded.messages[test] || @plain.messages[test]
        Difference.new(test: test, way: way, plain: @plain[test], recorded: recorded[test],
                       message: message, verdict: verdict)
      end
    end

    private

    def severe?(recorded) = ["unfinished", "absent", "time limit"].include?(recorded) || recorded.start_with?("SIG")

    def verdicts_alone(way, test)
      plain, recorded = ["plain", way].map { |which| Array.new(ALONE) { @run.call(which, [test])[test] }.uniq }
      return ["unsteady"] if plain.size > 1
      return [] if recorded == plain

      by_chance = recorded.size > 1 && recorded.none? { |outcome| severe?(outcome) }
      [by_chance ? verdict_of_chance(way, test, plain.first) : "differs"]
    end

    # Chance has a part in such a test. In turns, so that what else the machine does meets both.
    def verdict_of_chance(way, test, usual)
      differed = false
      @more.times do
        return "unsteady" if @run.call("plain", [test])[test] != usual

        differed |= @run.call(way, [test])[test] != usual
      end
      differed ? "differs" : "not repeated"
    end

    def verdict_again(test, again)
      plain, recorded = again
      return "unsteady" if plain[test] != @plain[test]

      recorded[test] == plain[test] ? "not repeated" : "differs"
    end
  end
end
