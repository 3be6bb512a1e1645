require_relative "../boot"
require "bundler/setup"

require "csv"
require "fileutils"
require "rails"
require "active_record/railtie"
require "action_controller/railtie"
require "action_view/railtie"

require_relative "../lib/shop/database"

module Shop
  # The same settings in every environment, those of production. With SHOP_EAGER_LOAD=off, classes are loaded when they
  # are used, and again when they change, as in development.
  class Application < Rails::Application
    config.load_defaults "#{Rails::VERSION::MAJOR}.#{Rails::VERSION::MINOR}"

    config.eager_load = ENV["SHOP_EAGER_LOAD"] != "off"
    config.enable_reloading = !config.eager_load
    config.consider_all_requests_local = false

    config.secret_key_base = "nothing here is secret " * 4
    config.cache_store = :memory_store
    config.public_file_server.enabled = true
    config.public_file_server.headers = { "cache-control" => "public, max-age=3600" }
    config.active_record.dump_schema_after_migration = false

    # Rotated, since a long benchmark writes a lot of it.
    log = File.join(ENV["SHOP_TMP"], "log", "#{Rails.env}.log")
    FileUtils.mkdir_p File.dirname(log)
    config.logger = ActiveSupport::TaggedLogging.new(ActiveSupport::Logger.new(log, 1, 16 << 20))
    config.log_level = :info
    config.log_tags = [:request_id]
  end
end
