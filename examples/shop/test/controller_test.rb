# The list of categories, by its controller alone: ruby test/controller_test.rb

require_relative "test_helper"
require "action_controller/test_case"

class CategoriesControllerTest < ActionController::TestCase
  include Repeated

  setup { @routes = Rails.application.routes } # what rails/test_help does

  def test_index
    repeatedly do
      get :index
      assert_response :success
    end
  end
end
