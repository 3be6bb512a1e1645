# frozen_string_literal: true

require_relative "../../support/removable"

# Much that lives long, so that each collection is dear, and short-lived objects that bring it about.
LIVING = Array.new(400_000) { |n| [n.to_s] }

def describe(n)
  name = LIVING[n % LIVING.size][0]
  name = "#{name}, #{n}".split(", ").first if Removable::KEPT # removable
  name.size + [n, name].size
end

Removable.times(1_500_000) { |n| describe(n) }
