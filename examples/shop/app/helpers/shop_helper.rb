module ShopHelper
  def money(cents)
    number_to_currency(cents / 100r, unit: "€")
  end
end
