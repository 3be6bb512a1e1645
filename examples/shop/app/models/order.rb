class Order < ApplicationRecord
  has_many :line_items, inverse_of: :order

  validates :customer, presence: true
  validates :email, format: { with: URI::MailTo::EMAIL_REGEXP }

  before_create { self.placed_at ||= Time.current }

  scope :placed_in, ->(year) { where(placed_at: Time.utc(year).all_year) }

  def total_cents
    line_items.sum(&:amount_cents)
  end
end
