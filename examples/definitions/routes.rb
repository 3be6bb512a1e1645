# Named routes of a Rails application, drawn when its controllers exist: the second script of ruby/ruby#2752 (John
# Hawthorn, 2019). Rails defines two methods for each route, on modules that all controllers have. N controllers, M routes.
#
#   N=1000 M=5000 ruby examples/definitions/routes.rb    # with the gems of examples/shop
#   pitwall compare --ruby ruby3.3 --ruby ruby3.4 examples/definitions/routes.rb
#   pitwall caches --no-lines --definitions -- ruby examples/definitions/routes.rb

require_relative "../shop/boot"
require "bundler/setup"
require "action_controller/railtie"
require "logger"
require_relative "row"

CONTROLLERS = Integer(ENV.fetch("N", 500))
ROUTES = Integer(ENV.fetch("M", 2000))

# An application without anything but routes.
class RoutesApplication < Rails::Application
  config.load_defaults Rails::VERSION::STRING.to_f
  config.root = __dir__
  config.eager_load = true
  config.logger = Logger.new(nil)
  config.secret_key_base = "routes" * 20
  initialize!
end

class ApplicationController < ActionController::Base; end
CONTROLLERS.times { |number| Object.const_set("Page#{number}Controller", Class.new(ApplicationController)) }

Row.of("#{ROUTES} routes, #{CONTROLLERS} controllers, Rails #{Rails.version}", "route", ROUTES) do
  RoutesApplication.routes.draw do
    ROUTES.times { |number| get "/page#{number}", to: "home#index" }
  end
end
