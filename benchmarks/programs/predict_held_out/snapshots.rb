# frozen_string_literal: true

require_relative "../../support/removable"

# A board is copied at each move, and the last hundred copies are kept for undoing.
class Board
  def initialize(side)
    @rows = Array.new(side) { |y| Array.new(side) { |x| (x * y) % 3 } }
    @undo = Array.new(100)
  end

  def move(n)
    row = @rows[n % @rows.size]
    row[n / 7 % row.size] = n % 3
    @undo[n % 100] = @rows.map(&:dup) if Removable::KEPT # removable
    [n, row.sum].hash + "move #{n}".size
  end
end

BOARD = Board.new(120)
Removable.times(60_000) { |n| BOARD.move(n) }
