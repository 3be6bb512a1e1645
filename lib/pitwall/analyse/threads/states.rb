# frozen_string_literal: true

module Pitwall
  module Analyse
    # The states a thread's time is split into, as recordings number them: the one list that options, views, exports and the page
    # take them from.
    module States
      # name: as options, JSON and labels have it; head: over a column; title: in a sentence; stands: what for the thread does
      # not run (:gvl: for the GVL; :idle: for anything else), nil where it runs or nobody knows.
      State = Struct.new(:name, :head, :title, :stands)

      # By number.
      ALL = [
        State.new("running", "running", "running", nil),
        State.new("gvl", "GVL wait", "waiting for the GVL", :gvl),
        State.new("blocked", "blocked", "blocked", :idle),
        State.new("unknown", "unknown", "unknown", nil),
        State.new("off-cpu", "off CPU", "off the CPU", :idle)
      ].each(&:freeze).freeze
      RUNNING = 0
      # What a Ruby without thread events tells.
      UNKNOWN = 3

      # A state that a later Pitwall added is "state 9", in every place.
      #: (Integer) -> State
      def self.[](number) = ALL.fetch(number) { State.new(*["state #{number}"] * 3, nil) }

      # 1 → "gvl"
      #: (Integer) -> String
      def self.name(number) = self[number].name

      # "gvl" → 1
      #: (String) -> Integer?
      def self.number(name) = ALL.index { |state| state.name == name }

      #: () -> Array[String]
      def self.names = ALL.map(&:name)

      # What an option takes: the names, and what reports call them: "GVL wait" → "gvl".
      #: () -> Hash[String, String]
      def self.words = ALL.flat_map { |state| [state.name, state.head, state.title].map { |word| [word, state.name] } }.to_h
    end
  end
end
