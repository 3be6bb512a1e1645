# frozen_string_literal: true

require "pitwall/bench/failed"
require "pitwall/errors"

module Pitwall
  # Measurements that analyse their samples while they run. Analysis decides which case is measured next
  # and when the samples are enough. So an experiment uses both the collectors and the analysis.
  module Experiment
    # The options of an experiment. Times are in seconds, as people type them.
    #
    # budget:        seconds for each case, e.g. 30.0
    # alpha:         chance of a false alarm: the verdict "slower" or "faster" for equal sides, e.g. 0.01
    # margin:        how far from 1 a ratio may be and still count as "the same", e.g. 0.01 for 1%
    # max_blocks:    upper limit for the number of blocks; nil: as many as the budget allows
    # control:       also measure the base against itself
    # check:         compare the cases' return values
    # warmup:        number of warm-up batches; nil: chosen by Pitwall::Bench::Script
    # batches:       number of measured batches; nil: chosen by Pitwall::Bench::Script
    # timeout:       seconds that a single process may take
    # pin:           whether all processes run on the same core
    # seed:          seed of the random order in which sides run
    # only:          Regexp; cases whose names don't match are left out
    # in_turns:      whether the sides of a comparison take turns batch by batch; not used for whole commands
    # allow_failure: whether a command may end with a status other than 0
    Settings = Struct.new(:budget, :alpha, :margin, :max_blocks, :control, :check, :warmup, :batches, :timeout, :pin,
                          :seed, :only, :allow_failure, :in_turns, keyword_init: true) do
      # Cases whose names match `only`; all cases without `only`.
      # Raises UsageError when no case matches.
      #: (Array[Record::Case]) -> Array[Record::Case]
      def select_cases(cases)
        found = cases.select { |kase| only.nil? || kase.name.match?(only) }
        return found if found.any?

        names = cases.map(&:name).first(8).join(", ")
        raise UsageError, "--only #{only.source}: no case has that in its name; there are #{names}"
      end

      # The settings as reports show them and files store them, e.g. {"budget_s" => 30.0, "pinned" => true}.
      #: () -> Hash[String, untyped]
      def to_facts
        { "budget_s" => budget, "alpha" => alpha, "margin" => margin, "max_blocks" => max_blocks, "control" => control,
          "check" => check, "warmup" => warmup, "batches" => batches, "timeout_s" => timeout, "pinned" => pin,
          "seed" => seed, "only" => only&.source, "in_turns" => in_turns }.compact
      end
    end

    # The sides of a case return different results (`--check`). Their times can't be compared then.
    class ResultsDiffer < Pitwall::Bench::Failed; end

    # Receives the progress of an experiment and shows nothing. CLI::Progress shows progress on a terminal.
    class NullProgress
      # Called once, before the first case.
      # seconds: budget of each case
      # longest: upper limit of seconds for a case whose budget is too short for the fewest pairs
      # pairs:   upper limit of pairs for each case; nil: as many as the budget allows
      #: (cases: Integer, seconds: Numeric, longest: Numeric, ?pairs: Integer?) -> void
      def expect(cases:, seconds:, longest:, pairs: nil); end

      # A step of unknown length begins, e.g. "building main".
      #: (String) -> void
      def step(text); end

      # A case begins.
      # blocks: upper limit of the case's blocks
      #: (String, Integer) -> void
      def begin(title, blocks); end

      # One more block has ended.
      #: () -> void
      def advance; end

      # The case or the step has ended.
      #: () -> void
      def end; end
    end

    autoload :Bench, "pitwall/experiment/bench"
    autoload :Bisection, "pitwall/experiment/bisection"
    autoload :Commits, "pitwall/experiment/commits"
    autoload :Compare, "pitwall/experiment/compare"
    autoload :Measurers, "pitwall/experiment/measurers"
    autoload :Places, "pitwall/experiment/places"
  end
end
