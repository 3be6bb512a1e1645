# frozen_string_literal: true

module Pitwall
  class Doctor
    # The result of one check.
    #
    # state   :ok, :note (worth knowing), :limited (a verb can do less), :no (a verb can't work)
    # value   the finding in a few words, e.g. "2 cores"
    # meaning the consequence; nil when there is none
    # mend    the remedy; nil when none is needed
    # affects the verbs that the finding restricts, e.g. ["profile"]
    Check = Struct.new(:name, :state, :value, :meaning, :mend, :affects, keyword_init: true) do
      # A check; `affects` is empty by default.
      #: (String, Symbol, String, ?meaning: String?, ?mend: String?, ?affects: Array[String]) -> Check
      def self.of(name, state, value, meaning: nil, mend: nil, affects: [])
        new(name: name, state: state, value: value.to_s, meaning: meaning, mend: mend, affects: affects)
      end

      # Whether the finding restricts a verb.
      #: () -> bool
      def restricts? = %i[limited no].include?(state)

      # The JSON object.
      #: () -> Hash[String, untyped]
      def to_h = super.to_h { |key, value| [key.to_s, value.is_a?(Symbol) ? value.to_s : value] }
    end
  end
end
