# frozen_string_literal: true

module Pitwall
  module Fastboot
    # Exceptions in the accelerator's own code, which runs inside the program's `require`.
    # @api private
    module Exceptions
      # What may go wrong there. The program must not see it.
      OWN = [StandardError, ScriptError, NoMemoryError, SystemStackError].freeze
      # For Thread.handle_interrupt: exceptions of Thread#raise wait. A rescue of ours would swallow them.
      LATER = OWN.to_h { |kind| [kind, :never] }.freeze
    end
  end
end
