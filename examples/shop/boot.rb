# Everything that starts the shop comes through here first: which Rails, which
# environment, and where files written at run time go. Each can be set outside.

old = Gem::Version.new(RUBY_VERSION) < Gem::Version.new("3.2") # too old for Rails 8
ENV["BUNDLE_GEMFILE"] ||= File.join(__dir__, "gemfiles", "#{old ? "rails_7_2" : "rails_8_1"}.gemfile")

ENV["RAILS_ENV"] ||= "production" # it is here to be measured
ENV["SHOP_TMP"] ||= File.join(__dir__, "tmp")
ENV["SHOP_DATABASE"] ||= File.join(ENV["SHOP_TMP"], "shop.sqlite3")
