# Sends a fixed mix of requests through the shop's whole stack, in this process
# and without a network: ruby drive.rb [REQUESTS]

# Where Pitwall is required and records the process, it records the requests only: `pitwall profile -- ruby -rpitwall drive.rb`.
recorded = defined?(Pitwall) && Pitwall.respond_to?(:pause) && Pitwall.recording?
Pitwall.pause if recorded

require_relative "boot"
require "fileutils"
require "tmpdir"

# One visitor with cookies, who expects a status of every answer.
class Visitor
  attr_reader :sent

  def initialize(app, limit)
    @browser = Rack::MockRequest.new(app)
    @limit = limit
    @sent = 0
    @cookies = {}
  end

  def get(path, status: 200)
    request("GET", path, status)
  end

  def post(path, status:, **options)
    request("POST", path, status, **options)
  end

  private

  def request(method, path, status, **options)
    throw :enough if @sent == @limit

    @sent += 1
    cookies = @cookies.map { |name, value| "#{name}=#{value}" }.join("; ")
    response = @browser.request(method, path, "HTTP_COOKIE" => cookies, "REMOTE_ADDR" => "127.0.0.1", **options)
    raise "#{method} #{path}: #{response.status} instead of #{status}" if response.status != status

    Array(response["set-cookie"]).flat_map(&:lines).each do |line|
      name, value = line[/\A[^;]+/].split("=", 2)
      @cookies[name] = value
    end
    response
  end
end

# What the visitor does, by how often in a hundred visits.
class Mix
  WORDS = ["carbon", "steel wheel", "titanium", "season", "garland brake", "rebuilt", "nothing like it"].freeze
  CATEGORIES = %w[brakes engine gearbox suspension wheels aero cooling electrics].freeze
  VISITS = { category: 24, product: 22, search: 13, home: 10, products_json: 8, product_json: 9,
             order: 4, order_json: 3, refused_order: 1, report: 2, missing: 2, stylesheet: 2 }.freeze

  def initialize(visitor)
    @visitor = visitor
    @random = Random.new(1)
    @visits = VISITS.flat_map { |name, count| [name] * count }
  end

  # In rounds, so that any hundred visits have the whole mix.
  def run
    catch(:enough) { loop { @visits.shuffle(random: @random).each { |name| send(name) } } }
  end

  private

  def home = @visitor.get("/")
  def stylesheet = @visitor.get("/shop.css")
  def missing = @visitor.get("/products/0", status: 404)
  def category = @visitor.get("/categories/#{any(CATEGORIES)}?sort=#{any(%w[name price dearest])}&page=#{any(1..3)}")
  def product = @visitor.get("/products/#{any(1..480)}")
  def product_json = @visitor.get("/products/#{any(1..480)}.json")
  def products_json = @visitor.get("/products.json?page=#{any(1..20)}")
  def search = @visitor.get("/search?q=#{any(WORDS).tr(" ", "+")}")
  def report = @visitor.get("/reports/sales/#{any(2022..2024)}.csv")

  def order
    answer = @visitor.post("/orders", status: 302, params: filled_form)
    @visitor.get(URI(answer["location"]).path)
  end

  def refused_order
    @visitor.post("/orders", status: 422, params: filled_form(email: "nobody"))
  end

  def order_json
    order = { product_id: any(1..480), quantity: 2, customer: "A. Program", email: "program@example.org" }
    @visitor.post("/orders.json", status: 201, input: { order: order }.to_json, "CONTENT_TYPE" => "application/json")
  end

  def filled_form(email: "visitor@example.org")
    page = product.body[%r{<form[^>]*action="/orders".*?</form>}m]
    { authenticity_token: page[/name="authenticity_token" value="([^"]+)/, 1],
      order: { product_id: page[/value="(\d+)"[^>]*name="order\[product_id\]"/, 1], quantity: any(1..5),
               customer: "A. Visitor", email: email } }
  end

  def any(choices)
    choices.is_a?(Range) ? @random.rand(choices) : choices.sample(random: @random)
  end
end

limit = Integer(ARGV.fetch(0, 300))

# A database of its own: runs neither see one another nor leave anything behind.
FileUtils.mkdir_p ENV["SHOP_TMP"]
Dir.mktmpdir("drive-", ENV["SHOP_TMP"]) do |directory|
  ENV["SHOP_DATABASE"] = File.join(directory, "shop.sqlite3")
  require_relative "config/environment"
  Shop::Database.prepare

  Pitwall.resume if recorded
  visitor = Visitor.new(Rails.application, limit)
  Mix.new(visitor).run
  puts "#{visitor.sent} requests, 0 failures" # the first would have raised
end
