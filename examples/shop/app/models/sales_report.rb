# Turnover of one year by month and category. Adds up in Ruby what SQL could: a
# report as many are, made of a lot of objects.
class SalesReport
  def initialize(year)
    @year = year
  end

  def to_csv
    CSV.generate do |csv|
      csv << ["month", "category", "orders", "units", "turnover", "best seller"]
      groups.sort.each do |(month, category), items|
        csv << [month, category, items.map(&:order_id).uniq.size, items.sum(&:quantity),
                format("%.2f", items.sum(&:amount_cents) / 100.0), best_seller(items)]
      end
    end
  end

  private

  def groups
    orders = Order.placed_in(@year).includes(line_items: { product: :category })
    orders.flat_map(&:line_items).group_by do |item|
      [item.order.placed_at.strftime("%Y-%m"), item.product.category.name]
    end
  end

  def best_seller(items)
    items.group_by(&:product).max_by { |product, sold| [sold.sum(&:quantity), -product.id] }.first.name
  end
end
