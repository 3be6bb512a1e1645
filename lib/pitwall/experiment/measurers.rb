# frozen_string_literal: true

require "pitwall/collect/bench/host"
require "pitwall/collect/bench/script"
require "pitwall/collect/bench/whole_command"

module Pitwall
  module Experiment
    # Who measures a subject, by what the subject is.
    module Measurers
      module_function

      #: (Collect::Bench::Subject, Settings) -> (Collect::Bench::Script | Collect::Bench::WholeCommand)
      def for(subject, settings)
        cpu = settings.pin ? Collect::Bench::Host.measuring_core : -1
        if subject.command
          Collect::Bench::WholeCommand.new(subject, cpu: cpu, timeout: settings.timeout, allow_failure: settings.allow_failure)
        else
          Collect::Bench::Script.new(subject, cpu: cpu, timeout: settings.timeout, warmup: settings.warmup, batches: settings.batches, check: settings.check)
        end
      end
    end
  end
end
