# A small Rails application, and sessions that test it. Each session asks for the module with the helpers of the routes
# (`posts_path`), as the integration tests of Rails 4.2 did. The module is made anew each time, as in Rails 4.2.
# The talk "How to Performance" (Eileen Uchitelle, 2015) tells how long it took to find that.

require_relative "../shop/boot"
require "bundler/setup"
require "action_controller/railtie"
require "logger"

# Today's Rails makes the module once (RouteSet#url_helpers). This is the regression.
module NewHelpersEachTime
  def url_helpers(supports_path = true) = generate_url_helpers(supports_path)
end
ActionDispatch::Routing::RouteSet.prepend(NewHelpersEachTime)

class Blog < Rails::Application
  config.load_defaults Rails::VERSION::STRING.to_f
  config.root = __dir__
  config.eager_load = true
  config.logger = Logger.new(nil)
  config.hosts.clear
  config.secret_key_base = "blog" * 20
  initialize!
end

class PostsController < ActionController::Base
  def index = render(plain: "#{request.path} #{request.format.symbol}")
end

Blog.routes.draw { resources :posts, only: :index }

# A visitor of a test.
class Session
  def initialize(app)
    @app = app
    @browser = Rack::MockRequest.new(app)
    @helpers = helpers
  end

  def get(path)
    response = @browser.get(path)
    raise "GET #{path}: #{response.status}" unless response.status == 200

    response.body
  end

  # A session's own methods find `posts_path` here. Most tests write paths down.
  def helpers = @app.routes.url_helpers
end
