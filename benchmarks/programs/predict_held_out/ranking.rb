# frozen_string_literal: true

require_relative "../../support/removable"

# Rows are sorted by keys that are arrays, once a page, though they are in order already.
Player = Struct.new(:name, :points, :games)
PLAYERS = Array.new(300) { |n| Player.new("player #{n}", 1000 - n, n % 40) }

def page(n)
  list = PLAYERS
  list = PLAYERS.sort_by { |player| [-player.points, player.games, player.name] } if Removable::KEPT # removable
  list.first(20).map { |player| "#{player.name}: #{player.points + n}" }.join("\n").size
end

Removable.times(4_000) { |n| page(n) }
