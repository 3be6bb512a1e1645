# frozen_string_literal: true

module Pitwall
  module Bench
    # What a program that failed said on standard error, in one line.
    # @api private
    module Said
      # "a.rb:3:in `call': message (KeyError)", the first line of what Ruby says of an exception.
      RAISED = /:\d+:.*\([A-Z]\w*(?:::[A-Z]\w*)*\)\z/.freeze
      FROM = /\A\s+(?:\d+: )?from /.freeze
      private_constant :RAISED, :FROM

      module_function

      # Of a backtrace its first line, which has the message: those below say how the program came there. Else the last line, "" for none.
      #: (String) -> String
      def line(errors)
        lines = errors.scrub("?").lines.map(&:rstrip).reject(&:empty?)
        # A message of several lines has its class behind the first. What caused an exception stands below it.
        raised = lines.find { |line| line.match?(RAISED) }
        at = lines.index { |line| line.match?(FROM) }
        (raised || (at&.positive? ? lines[at - 1] : lines.last)).to_s.strip
      end
    end
  end
end
