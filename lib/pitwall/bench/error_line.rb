# frozen_string_literal: true

module Pitwall
  module Bench
    # Picks the one line of a failed program's standard error that says what went wrong.
    # @api private
    module ErrorLine
      # "a.rb:3:in `call': message (KeyError)", the first line of Ruby's report of an exception.
      RAISED = /:\d+:.*\([A-Z]\w*(?:::[A-Z]\w*)*\)\z/.freeze
      FROM = /\A\s+(?:\d+: )?from /.freeze
      private_constant :RAISED, :FROM

      module_function

      # The first line of a backtrace, which has the message. Without a backtrace the last line; "" if there is none.
      #: (String) -> String
      def of(errors)
        lines = errors.scrub("?").lines.map(&:rstrip).reject(&:empty?)
        # The class stands behind the first line of a message. The cause of an exception stands below the exception.
        raised = lines.find { |line| line.match?(RAISED) }
        at = lines.index { |line| line.match?(FROM) }
        (raised || (at&.positive? ? lines[at - 1] : lines.last)).to_s.strip
      end
    end
  end
end
