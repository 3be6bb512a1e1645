# The same shop every time, on every machine.

random = Random.new(1950)
pick = ->(words) { words[random.rand(words.size)] }

parts = {
  "Brakes" => %w[Caliper Disc Duct Pad Pedal], "Engine" => %w[Camshaft Gasket Injector Manifold Piston],
  "Gearbox" => %w[Clutch Gear Lever Selector Shaft], "Suspension" => %w[Bearing Damper Spring Upright Wishbone],
  "Wheels" => %w[Hub Nut Rim Tyre Valve], "Aero" => %w[Diffuser Endplate Flap Splitter Wing],
  "Cooling" => %w[Fan Hose Pump Radiator Thermostat], "Electrics" => %w[Battery Loom Relay Sensor Switch],
  "Fuel" => %w[Bladder Filter Line Regulator Tank], "Cockpit" => %w[Belt Dash Extinguisher Seat Wheel],
  "Tools" => %w[Gauge Gun Jack Stand Wrench], "Clothing" => %w[Balaclava Boots Gloves Helmet Overalls]
}
makes = %w[Ardent Borrani Calder Dunlin Everard Fairway Garland Hewitt]
materials = %w[aluminium carbon ceramic forged hardened lightweight steel titanium]
phrases = [
  "Made for a full season of racing.", "Fits most cars of its class without machining.",
  "Tested on the bench & on the track.", "Supplied with all fittings.", "Weighs less than the part it replaces.",
  "Keeps its shape when hot.", "Sold singly; order two for an axle.", "Rebuilt free of charge in the first year."
]
names = %w[Alma Bruno Carla Dario Edith Felix Greta Hugo Irma Jonas Karin Ludo]
surnames = %w[Abbott Brandt Conti Dupont Eriksen Fischer Greco Hansen]

categories = parts.keys.each.with_index(1).map { |name, id| { id: id, name: name, slug: name.downcase } }

products = Array.new(480) do |index|
  category = categories[index % categories.size]
  name = "#{pick[makes]} #{pick[materials]} #{pick[parts[category[:name]]].downcase}"
  { id: index + 1, category_id: category[:id], sku: format("%s-%04d", category[:name][0, 2].upcase, index + 1),
    name: name, description: Array.new(4) { pick[phrases] }.join(" "), price_cents: 500 + random.rand(2_000) * 25 }
end

opening = Time.utc(2022, 1, 1)
orders = Array.new(900) do |index|
  name = pick[names]
  surname = pick[surnames]
  { id: index + 1, customer: "#{name} #{surname}", email: "#{name}.#{surname}@example.org".downcase,
    placed_at: opening + index * 29.2.hours + random.rand(3_600) }
end

items = orders.flat_map do |order|
  Array.new(1 + random.rand(4)) do
    product = pick[products]
    { order_id: order[:id], product_id: product[:id], quantity: 1 + random.rand(5), price_cents: product[:price_cents] }
  end
end

ActiveRecord::Base.transaction do
  { Category => categories, Product => products, Order => orders, LineItem => items }.each do |model, rows|
    rows.each_slice(500) { |slice| model.insert_all!(slice) }
  end
end
