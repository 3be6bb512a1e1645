# frozen_string_literal: true

module Pitwall
  module Analyse
    # The thread states, by the numbers that recordings use. Options, views, exports and the page all use this list.
    module States
      # name:  in options, JSON and labels
      # head:  heading of a column
      # title: in a sentence
      # wait:  why the thread does not run: :gvl (waits for the GVL) or :idle (any other reason);
      #        nil if it runs or if the state is unknown
      State = Struct.new(:name, :head, :title, :wait)

      # By number.
      ALL = [
        State.new("running", "running", "running", nil),
        State.new("gvl", "GVL wait", "waiting for the GVL", :gvl),
        State.new("blocked", "blocked", "blocked", :idle),
        State.new("unknown", "unknown", "unknown", nil),
        State.new("off-cpu", "off CPU", "off the CPU", :idle)
      ].each(&:freeze).freeze
      RUNNING = 0
      # State of all samples where the Ruby reports no thread events.
      UNKNOWN = 3

      # The state of a number. A number that only a later Pitwall knows is named "state 9".
      #: (Integer) -> State
      def self.[](number) = ALL.fetch(number) { State.new(*["state #{number}"] * 3, nil) }

      # Number → name: 1 → "gvl"
      #: (Integer) -> String
      def self.name(number) = self[number].name

      # Name → number: "gvl" → 1
      #: (String) -> Integer?
      def self.number(name) = ALL.index { |state| state.name == name }

      # Names of all states.
      #: () -> Array[String]
      def self.names = ALL.map(&:name)

      # Words that an option accepts → names. Words are the names, and the headings and titles of reports, e.g.
      # "GVL wait" → "gvl".
      #: () -> Hash[String, String]
      def self.words
        ALL.flat_map { |state| [state.name, state.head, state.title].map { |word| [word, state.name] } }.to_h
      end
    end
  end
end
