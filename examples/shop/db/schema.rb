ActiveRecord::Schema[7.2].define(version: 1) do
  create_table :categories, force: true do |t|
    t.string :name, null: false
    t.string :slug, null: false, index: { unique: true }
  end

  create_table :products, force: true do |t|
    t.belongs_to :category, null: false
    t.string :sku, null: false, index: { unique: true }
    t.string :name, null: false
    t.text :description, null: false
    t.integer :price_cents, null: false
  end

  create_table :orders, force: true do |t|
    t.string :customer, null: false
    t.string :email, null: false
    t.datetime :placed_at, null: false, index: true
  end

  create_table :line_items, force: true do |t|
    t.belongs_to :order, null: false
    t.belongs_to :product, null: false
    t.integer :quantity, null: false
    t.integer :price_cents, null: false
  end
end
