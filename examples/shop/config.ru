require_relative "config/environment"

Shop::Database.prepare
run Rails.application
