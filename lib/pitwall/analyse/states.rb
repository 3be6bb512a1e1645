# frozen_string_literal: true

module Pitwall
  module Analyse
    # The states a thread's time is split into, as recordings number them.
    module States
      NAMES = { 0 => "running", 1 => "gvl", 2 => "blocked", 3 => "unknown", 4 => "off-cpu" }.freeze

      # 1 → "gvl"; a state that a later Pitwall added is "state 9".
      #: (Integer) -> String
      def self.name(number) = NAMES.fetch(number) { "state #{number}" }

      # "gvl" → 1
      #: (String) -> Integer?
      def self.number(name) = NAMES.key(name)
    end
  end
end
