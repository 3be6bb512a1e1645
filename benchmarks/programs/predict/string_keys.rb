# frozen_string_literal: true

require_relative "../../support/removable"

# A lookup that builds its key anew each time. Without the removable line it looks up the key that it has already; Ruby
# finds the same object faster than an equal one.
class Catalogue
  def initialize(size)
    @prices = Array.new(size) { |n| ["product:#{n}:price", n] }.to_h
    @keys = @prices.keys
  end

  def price(n)
    key = "product:#{n}:price" if Removable::KEPT # removable
    @prices[@keys[n]] || key
  end

  def size = @keys.size
end

CATALOGUE = Catalogue.new(20_000)
Removable.times(1_500_000) { |n| CATALOGUE.price(n * 7919 % CATALOGUE.size) + [n].first }
