# frozen_string_literal: true

require_relative "../../support/removable"

# Small arrays that live for a moment, in a small heap.
class Grid
  SIDE = 200

  def initialize = @cells = Array.new(SIDE * SIDE) { |n| n % 11 }

  def near(x, y)
    sum = @cells[y * SIDE + x]
    sum += [x - 1, x + 1].sum { |at| @cells[y * SIDE + at % SIDE] } + [y - 1, y + 1].sum { |at| @cells[at % SIDE * SIDE + x] } if Removable::KEPT # removable
    [sum, x, y].max
  end
end

GRID = Grid.new
Removable.times(1_200_000) { |n| GRID.near(n % Grid::SIDE, n / Grid::SIDE % Grid::SIDE) }
