# The second fix of the talk: a session asks for the helpers when a test needs them.
require_relative "app"

class Session
  def initialize(app)
    @app = app
    @browser = Rack::MockRequest.new(app)
  end
end
