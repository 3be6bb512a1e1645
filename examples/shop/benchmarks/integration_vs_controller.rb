# The same action tested through the whole stack and through the controller alone: how much do integration tests cost?
# The question (and the form of the benchmark) is that of Eileen Uchitelle's "How to Performance" (RubyConf 2015).
# A script for benchmark-ips; nothing in it is Pitwall's:
#
#   pitwall bench examples/shop/benchmarks/integration_vs_controller.rb

ENV["RAILS_ENV"] = "test"
require_relative "../config/environment"
Shop::Database.prepare

require "benchmark/ips"
require "action_controller/test_case"
require "minitest"

class CategoriesIntegrationTest < ActionDispatch::IntegrationTest
  def test_index
    get "/"
    assert_response :success
  end
end

class CategoriesControllerTest < ActionController::TestCase
  setup { @routes = Rails.application.routes } # what rails/test_help does, which would also run tests at exit

  def test_index
    get :index
    assert_response :success
  end
end

def run_test(test_class)
  result = Minitest::Result.from(test_class.new("test_index").run)
  raise result.failure unless result.passed?
end

Benchmark.ips do |x|
  x.report("integration test") { run_test(CategoriesIntegrationTest) }
  x.report("controller test") { run_test(CategoriesControllerTest) }
  x.compare!
end
