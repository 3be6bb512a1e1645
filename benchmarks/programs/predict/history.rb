# frozen_string_literal: true

require_relative "../../support/removable"

# What is remembered for a while grows old, and old objects make major collections.
class History
  SIZE = 60_000

  def initialize
    @events = Array.new(SIZE)
    @at = 0
  end

  def add(n)
    @at = (@at + 1) % SIZE
    @events[@at] = { id: n, text: "event #{n}", tags: [n, n + 1] } if Removable::KEPT # removable
    [n, @at].sum + "seen #{n}".size
  end
end

HISTORY = History.new
Removable.times(900_000) { |n| HISTORY.add(n) }
