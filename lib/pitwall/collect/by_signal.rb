# frozen_string_literal: true

require_relative "continuous"

module Pitwall
  module Collect
    # Starts and stops recording by a signal of the user's choice.
    # @api private
    module BySignal
      ACTIONS = %i[toggle start stop rotate].freeze
      # Values of `trap` for a signal without a handler.
      FREE = ["DEFAULT", "SYSTEM_DEFAULT", "IGNORE", "SIG_IGN", "SIG_DFL", ""].freeze
      private_constant :ACTIONS, :FREE

      module_function

      # @raise [UsageError] no such signal or action
      # @raise [CannotMeasure] the program handles the signal
      #: (String, Symbol) -> void
      def install(name, action)
        raise UsageError, "on_signal: #{action.inspect}: choose #{ACTIONS.join(", ")}" unless ACTIONS.include?(action)

        name = name.to_s.sub(/\ASIG/, "").upcase
        number = Signal.list[name] or raise UsageError, "on_signal: there is no signal #{name}"
        Pitwall.load_native!
        taken = CannotMeasure.new("signal #{name} is already handled by the program: choose another")
        raise taken if Native.signal_foreign?(number)

        before = trap(name) { run(action) }
        return if FREE.include?(before)

        trap(name, before)
        raise taken
      rescue ArgumentError, Errno::EINVAL => error
        raise UsageError, "on_signal: #{name}: #{error.message}: choose another"
      end

      # Runs in a trap, so it takes no lock.
      def run(action)
        return Continuous.request(action) if Continuous.dir

        action = Session.recording? ? :stop : :start if action == :toggle
        Session.stop if action != :start && Session.recording?
        Session.start(path: Place.default) if action != :stop && !Session.recording?
      rescue Pitwall::Error, SystemCallError => error
        $stderr.write("pitwall: on signal: #{error.message}\n")
      end
    end
  end
end
