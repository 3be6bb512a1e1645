class Product < ApplicationRecord
  PAGE = 12
  ORDERS = { "name" => :name, "price" => :price_cents, "dearest" => { price_cents: :desc } }.freeze

  belongs_to :category
  has_many :line_items

  scope :page, ->(number) { limit(PAGE).offset(PAGE * ([number.to_i, 1].max - 1)) }
  scope :sorted, ->(by) { order(ORDERS.fetch(by.to_s, :name), :id) }
  scope :matching, lambda { |text|
    text.split.inject(all) do |found, word|
      like = "%#{sanitize_sql_like(word)}%"
      found.where("name LIKE :like OR description LIKE :like", like: like)
    end
  }
  scope :bestsellers, lambda {
    joins(:line_items).group(:id).order(Arel.sql("SUM(line_items.quantity) DESC"), :id)
  }

  def units_sold
    line_items.sum(:quantity)
  end

  def related
    category.products.where.not(id: id).order(Arel.sql("ABS(price_cents - ?)", price_cents), :id)
  end
end
