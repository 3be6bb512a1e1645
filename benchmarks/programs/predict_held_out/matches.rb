# frozen_string_literal: true

require_relative "../../support/removable"

# A pattern that is matched for its groups, where a look at the first character would have done.
ROWS = Array.new(4_000) { |n| "#{n % 7}-#{n * 31 % 1000}:#{%w[red green blue][n % 3]};#{"y" * (n % 20)}" }
PATTERN = /(?<kind>\d)-(?<size>\d+):(?<colour>\w+)/.freeze

def kind(row)
  kind = row.getbyte(0) - 48
  kind = row.match(PATTERN).named_captures["kind"].to_i if Removable::KEPT # removable
  [kind, row].hash
end

Removable.times(500_000) { |n| kind(ROWS[n % ROWS.size]) }
