# The list of categories, through the whole stack: ruby test/integration_test.rb

require_relative "test_helper"

class CategoriesIntegrationTest < ActionDispatch::IntegrationTest
  include Repeated

  def test_index
    repeatedly do
      get "/"
      assert_response :success
    end
  end
end
