# frozen_string_literal: true

module Pitwall
  module Fastboot
    # The accelerator runs inside the program's `require`. Its exceptions must not reach the program, and it must not
    # rescue those of the program.
    # @api private
    module Exceptions
      # What the accelerator's code rescues.
      OWN = [StandardError, ScriptError, NoMemoryError, SystemStackError].freeze
      # For Thread.handle_interrupt. If another thread raises one of these here, it waits until the accelerator is done.
      # Otherwise the accelerator would rescue it.
      LATER = OWN.to_h { |kind| [kind, :never] }.freeze
    end
  end
end
