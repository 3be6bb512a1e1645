# Tests that write paths down, one that asks for a helper. Which lines change classes and methods while they run?
#
#   pitwall caches --after boot -- ruby examples/url_helpers/sessions_test.rb

require_relative "app"
require "minitest"
Minitest.autorun

class SessionsTest < Minitest::Test
  40.times do |number|
    define_method("test_page_#{number}") { assert_equal "/posts html", Session.new(Blog).get("/posts") }
  end

  def test_helper = assert_equal("/posts", Session.new(Blog).helpers.posts_path)
end
