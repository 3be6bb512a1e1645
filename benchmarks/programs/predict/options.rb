# frozen_string_literal: true

require_relative "../../support/removable"

# A method that merges its options with the defaults at every call, and then needs only what it was given.
DEFAULTS = {
  width: 80, height: 24, colour: true, wrap: false, indent: 2, align: :left, locale: :en, time: nil, zone: 0
}.freeze

def render(n, options)
  DEFAULTS.merge(options) if Removable::KEPT # removable
  [n % options.fetch(:width), options.size, "row #{n}"].hash
end

GIVEN = { width: 100 }.freeze
Removable.times(700_000) { |n| render(n, GIVEN) }
