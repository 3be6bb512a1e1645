# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/analyse"

# What a name means: each rule, and which rule comes first.
class MethodMatchTest < Minitest::Test
  Analyse = Pitwall::Analyse
  GEMS = "/usr/lib/ruby/gems/3.4.0/gems"
  METHODS = [
    ["(root)", "", 4], ["Shop::Cart#sum", "/app/cart.rb", 0], ["block in Shop::Cart#sum", "/app/cart.rb", 0],
    ["Shop::Cart::Row#sum", "/app/row.rb", 0], ["Shop::Cartoon.draw", "/app/cartoon.rb", 0],
    ["Response#json", "/app/response.rb", 0], ["JSON.parse", "#{GEMS}/json-2.9.1/lib/json.rb", 0],
    ["ActiveRecord::Base#save", "#{GEMS}/activerecord-7.1.2/lib/base.rb", 0],
    ["Rails::Engine#call", "#{GEMS}/railties-7.1.2/lib/engine.rb", 0],
    ["rb_ary_push", "/usr/lib/libruby-3.4.so.3.4.1", 3],
    ["memcpy", "/usr/lib/libc.so.6", 3], ["RSpec::Core.run", "#{GEMS}/rspec-core-3.13.2/lib/core.rb", 0],
    ["Array#each", "", 1]
  ].map { |name, path, kind| Analyse::MethodInfo.new(name, path, 1, kind) }.freeze

  {
    "Shop::Cart#sum" => ["Shop::Cart#sum"], # not the block, nor another end
    "sum" => ["Shop::Cart#sum", "Shop::Cart::Row#sum"],
    "#json" => ["Response#json"],
    "json" => ["JSON.parse"], # the gem, before ends
    "rails" => ["ActiveRecord::Base#save", "Rails::Engine#call"],
    "activerecord" => ["ActiveRecord::Base#save"],
    "rspec" => ["RSpec::Core.run"],
    "gems/railties" => ["Rails::Engine#call"],
    "Shop::Cart" => ["Shop::Cart#sum", "block in Shop::Cart#sum", "Shop::Cart::Row#sum"],
    "Cart" => ["Shop::Cart#sum", "block in Shop::Cart#sum", "Shop::Cart::Row#sum"],
    "Array" => ["Array#each"],
    "libruby.so" => ["rb_ary_push"], "libc" => ["memcpy"], "/usr/lib/libc.so.6" => ["memcpy"],
    "Cartoo" => ["Shop::Cartoon.draw"],
    "nix" => []
  }.each do |name, expected|
    define_method(:"test_#{name}") { assert_equal expected, found(name) }
  end

  def test_the_application_whose_folder_looks_like_a_gem_is_no_gem
    methods = [METHODS[0], Analyse::MethodInfo.new("Shop#sum", "/srv/gems/shop-1.2/lib/shop.rb", 1, 0)]
    inside = Analyse::Origin.new(base: "/srv/gems/shop-1.2")
    assert_equal [1], Analyse::MethodMatch.search(methods, "shop")
    assert_empty Analyse::MethodMatch.search(methods, "shop", inside)
  end

  def test_a_set_has_what_each_name_means
    set = Analyse::MethodMatch::Set.new("@framework", %w[rails rack])
    assert_equal [7, 8], Analyse::MethodMatch.find(METHODS, set)
  end

  def test_what_is_like_an_unknown_name
    error = assert_raises(Pitwall::UsageError) { Analyse::MethodMatch.find(METHODS, "activrecord") }
    assert_equal 'no method "activrecord" in the recording; did you mean activerecord?', error.message
  end

  private

  def found(name) = METHODS.values_at(*Analyse::MethodMatch.search(METHODS, name)).map(&:name)
end
