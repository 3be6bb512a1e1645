# frozen_string_literal: true

require_relative "../../support/removable"

# Large strings: what brings collections about is malloc'd bytes, not slots.
class Encoder
  def initialize = @page = "lorem ipsum dolor sit amet, " * 400

  def encode(n)
    text = @page
    text = @page.tr("aeiou", "eioua") if Removable::KEPT # removable
    header = "x" * 3_000
    text.byteslice(n % 1000, 100).sum + header.size
  end
end

ENCODER = Encoder.new
Removable.times(60_000) { |n| ENCODER.encode(n) }
