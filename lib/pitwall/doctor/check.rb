# frozen_string_literal: true

module Pitwall
  class Doctor
    # One thing looked at.
    #
    # state   :ok, :note (worth knowing), :limited (a command can do less), :no (a command can't work)
    # value   what was found, in a few words
    # meaning what follows from it, nil when nothing does
    # mend    what to do about it, nil when there is nothing to mend
    # affects the commands that it restricts
    Check = Struct.new(:name, :state, :value, :meaning, :mend, :affects, keyword_init: true) do
      #: (String, Symbol, String, ?meaning: String?, ?mend: String?, ?affects: Array[String]) -> Check
      def self.of(name, state, value, meaning: nil, mend: nil, affects: [])
        new(name: name, state: state, value: value.to_s, meaning: meaning, mend: mend, affects: affects)
      end

      #: () -> bool
      def restricts? = %i[limited no].include?(state)

      #: () -> Hash[String, untyped]
      def to_h = super.to_h { |key, value| [key.to_s, value.is_a?(Symbol) ? value.to_s : value] }
    end
  end
end
