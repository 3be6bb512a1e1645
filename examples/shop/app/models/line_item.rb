class LineItem < ApplicationRecord
  belongs_to :order
  belongs_to :product

  validates :quantity, numericality: { only_integer: true, in: 1..100 }

  before_validation { self.price_cents ||= product&.price_cents }

  def amount_cents
    quantity * price_cents
  end
end
