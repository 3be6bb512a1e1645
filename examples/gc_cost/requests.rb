# frozen_string_literal: true

# A small application is asked 3,000 times, as a benchmark of it would. Which five lines allocate most, and how old do their objects grow?
#
#   pitwall allocations --limit 5 -- ruby examples/gc_cost/requests.rb
#
# FROZEN=1 takes the strings that are always the same from constants.
FROZEN = ENV["FROZEN"] == "1"
METHOD = "REQUEST_METHOD"
PATH = "PATH_INFO"
TYPE = "CONTENT_TYPE"
DEFAULTS = { "HTTP_HOST" => "www.example.com", "REMOTE_ADDR" => "127.0.0.1" }.freeze

# One request after the other.
class Session
  def initialize(app)
    @app = app
    @history = []
  end

  def get(path)
    env = environment(path)
    response = @app.call(env)
    @history.shift if @history.size > 100
    @history << response
    response
  end

  def environment(path)
    return DEFAULTS.merge(METHOD => "GET", PATH => path) if FROZEN

    env = { "HTTP_HOST".dup => "www.example.com".dup, "REMOTE_ADDR".dup => "127.0.0.1".dup }
    env["REQUEST_METHOD".dup] = "GET".dup
    env["PATH_INFO".dup] = path.dup
    env
  end
end

APP = lambda do |env|
  words = env[PATH].split("/")
  type = FROZEN ? TYPE : "CONTENT_TYPE".dup
  [200, { type => "text/html" }, ["<h1>#{words.last}</h1>"]]
end

session = Session.new(APP)
sizes = Array.new(3000) { |n| session.get("/articles/#{n % 50}")[2].first.size }
puts "#{sizes.size} requests, #{sizes.sum} bytes"
