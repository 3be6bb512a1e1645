# frozen_string_literal: true

require "pitwall/bench/failed"
require "pitwall/errors"

module Pitwall
  # Measurements that look at their data as they come in, and so stand between collecting and analysing: who is measured next
  # and when it is enough is decided by analysis, from what was collected so far.
  module Experiment
    # What an experiment is asked for. Times in seconds as people type them.
    #
    # budget:    seconds for each case
    # alpha:     the chance of calling slower or faster what is neither
    # margin:    how far from 1 a ratio may be and still be "the same"
    # max_blocks: never more blocks than that
    # control:   also measure the base against itself
    # check:     compare what the cases return
    # warmup, batches: see Pitwall::Bench::Script; nil chooses
    # timeout:   seconds a single process may take
    # pin:       whether to keep the processes on one core
    # seed:      of the order in which sides are run
    # only:      a Regexp; other cases are left out
    # in_turns:  whether the sides of a comparison run batch by batch in turns, where they are no whole commands
    # allow_failure: whether a command may end with a status other than 0
    Settings = Struct.new(:budget, :alpha, :margin, :max_blocks, :control, :check, :warmup, :batches, :timeout, :pin, :seed, :only, :allow_failure, :in_turns,
                          keyword_init: true) do
      # The cases that are wanted.
      # Raises UsageError where none is.
      #: (Array[Record::Case]) -> Array[Record::Case]
      def chosen(cases)
        found = cases.select { |kase| only.nil? || kase.name.match?(only) }
        return found if found.any?

        raise UsageError, "--only #{only.source}: no case has that in its name; there are #{cases.map(&:name).first(8).join(", ")}"
      end

      # As views show and files keep them.
      #: () -> Hash[String, untyped]
      def to_facts
        { "budget_s" => budget, "alpha" => alpha, "margin" => margin, "max_blocks" => max_blocks, "control" => control, "check" => check,
          "warmup" => warmup, "batches" => batches, "timeout_s" => timeout, "pinned" => pin, "seed" => seed, "only" => only&.source, "in_turns" => in_turns }.compact
      end
    end

    # The sides don't do the same: how long they take says nothing.
    class Different < Pitwall::Bench::Failed; end

    # Told what goes on; this one keeps silent. A command line shows it.
    class Silence
      # So many cases are about to be measured, each for at most so many seconds; where that holds too few pairs, for the longer time.
      # pairs: at most so many of each; nil: what the time holds.
      def expect(cases:, seconds:, longest:, pairs: nil); end

      # A step without a known length: building a side, say.
      def step(text); end

      # Blocks are about to be run, at most so many.
      def begin(title, blocks); end

      # One more was.
      def advance; end

      # No more of them.
      def end; end
    end

    autoload :Bench, "pitwall/experiment/bench"
    autoload :Compare, "pitwall/experiment/compare"
    autoload :Measurers, "pitwall/experiment/measurers"
  end
end
