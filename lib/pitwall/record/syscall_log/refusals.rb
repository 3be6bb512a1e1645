# frozen_string_literal: true

module Pitwall
  module Record
    class SyscallLog
      # Counts the lines that a format could not read and keeps the beginning of the first.
      # @api private
      module Refusals
        attr_reader :first_unreadable

        #: () -> Integer
        def unreadable = @unreadable.to_i

        private

        def refuse(line)
          @unreadable = unreadable + 1
          @first_unreadable ||= line.byteslice(0, 200)
          nil
        end
      end
    end
  end
end
