# frozen_string_literal: true

module Benchmarks
  # Rounds of cases. Each round runs every case once, in a newly drawn order, so that drift of the machine affects all
  # cases alike.
  module Rounds
    # The block measures one case; where it answers nil the case is missing from that round.
    #: (Context, Array[String], Integer) { (String) -> Hash? } -> Array[Hash[String, Hash]]
    def self.take(context, names, count, seed: 1)
      random = Random.new(seed)
      rounds = Array.new(count) do
        names.shuffle(random: random).to_h { |name| [name, yield(name)].tap { context.progress } }.compact
      end
      context.progress("\n")
      rounds
    end
  end
end
