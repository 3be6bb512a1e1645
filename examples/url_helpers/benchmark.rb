# What a session and one page cost.
#
#   pitwall compare --check --patch examples/url_helpers/memoized.rb --patch examples/url_helpers/where_needed.rb \
#     examples/url_helpers/benchmark.rb

require_relative "app"

Pitwall.bench("a session gets a page") { |x| x.report("session") { Session.new(Blog).get("/posts") } }
