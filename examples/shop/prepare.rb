# Creates and fills the database unless that is done already.

require_relative "config/environment"

Shop::Database.prepare
puts "#{Product.count} products, #{Order.count} orders in #{Shop::Database.path}"
