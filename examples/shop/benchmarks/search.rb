# One search through the whole stack: the page that asks one query per row.
require_relative "../config/environment"
Shop::Database.prepare

require "benchmark/ips"
browser = Rack::MockRequest.new(Rails.application)

Benchmark.ips do |x|
  x.report("GET /search") do
    response = browser.get("/search?q=carbon")
    raise "GET /search: #{response.status}" unless response.status == 200

    response.body.bytesize
  end
end
