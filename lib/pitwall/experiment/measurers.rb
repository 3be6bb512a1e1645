# frozen_string_literal: true

require "pitwall/bench/host"
require "pitwall/bench/script"
require "pitwall/bench/whole_command"

module Pitwall
  module Experiment
    # Chooses the measurer for a subject: WholeCommand for a command, Script for a benchmark file or -e.
    module Measurers
      module_function

      # The measurer of a subject, which the caller must close.
      #: (Pitwall::Bench::Subject, Settings) -> (Pitwall::Bench::Script | Pitwall::Bench::WholeCommand)
      def for(subject, settings)
        cpu = settings.pin ? Pitwall::Bench::Host.measuring_core : -1
        if subject.command
          Pitwall::Bench::WholeCommand.new(subject,
                                           cpu: cpu, timeout: settings.timeout,
                                           allow_failure: settings.allow_failure)
        else
          Pitwall::Bench::Script.new(subject,
                                     cpu: cpu, timeout: settings.timeout, warmup: settings.warmup,
                                     batches: settings.batches, check: settings.check)
        end
      end
    end
  end
end
