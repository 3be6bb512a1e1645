# frozen_string_literal: true

require_relative "../../support/removable"

# A log is read; each line is taken apart to no end but its first word.
LINES = Array.new(5_000) { |n| "GET /articles/#{n} 200 #{n * 3}ms host#{n % 9} user#{n % 31} agent #{"x" * (n % 40)}" }

def method_of(line)
  word = line[0, 3]
  word = line.split.first if Removable::KEPT # removable
  word.hash ^ line.hash
end

Removable.times(700_000) { |n| method_of(LINES[n % LINES.size]) }
