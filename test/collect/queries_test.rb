# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/database_program"
require "json"
require "shellwords"
require "pitwall/analyse"
require "pitwall/analyse/recording/strings"
require "pitwall/record"

# Real ActiveRecord and Sequel on a real database: what is counted is what was asked.
class QueriesTest < Minitest::Test
  include DatabaseProgram

  def recorded = @recorded ||= Pitwall::Record.read(file("a.pit")).segments
  def queries = Pitwall::Analyse::Queries.new(recorded)
  def rows(**labels) = queries.rows(Pitwall::Analyse::Selection.new(labels: labels.transform_keys(&:to_s)))

  # Line → [kind, requests, count, most of each query of it], without what the schema is asked.
  def by_line(**labels)
    rows(**labels).reject(&:schema?).group_by(&:line).transform_values { |found| found.map { |row| [row.kind, row.requests, row.count, row.most] }.sort }
  end

  PAGE = <<~'RUBY'
    def page(books) = books.each { |book| book.author.name }
    def route(name, times, &block) = times.times { Pitwall.request(route: name, &block) }
    route("GET /slow", 3) do
      page(Book.limit(30).to_a)
    end
    route("GET /fine", 3) { page(Book.includes(:author).limit(30).to_a) }
    route("GET /cached", 2) do
      Author.cache { 5.times { Author.where(name: "secret").to_a } }
    end
    route("GET /broken", 2) do
      Author.connection.execute("SELECT secret FROM nowhere") rescue print "raised "
    end
    route("POST /", 1) do
      Author.transaction { 3.times { |number| Author.create!(name: number.to_s) } }
      Author.where(id: Array.new(rand(3..9)) { |id| id }).to_a
      Author.where(id: Array.new(rand(10..20)) { |id| id }).to_a
    end
    puts Book.count
  RUBY

  def test_active_record
    result = record_database("active_record", PAGE)
    assert_equal ["raised raised 80\n", 0], [result.out, result.status.exitstatus], result.err
    assert_equal({ 1 => [[0, 3, 90, 30]], 4 => [[0, 3, 3, 1]] }, by_line(route: "GET /slow"))
    assert_equal({ 6 => [[0, 3, 3, 1], [0, 3, 3, 1]] }, by_line(route: "GET /fine"))
    assert_equal({ 8 => [[0, 2, 2, 1], [1, 2, 8, 4]] }, by_line(route: "GET /cached"))
    assert_equal({ 11 => [[0, 2, 2, 1]] }, by_line(route: "GET /broken"))
    posted = by_line(route: "POST /")
    assert_includes posted.fetch(14), [0, 1, 3, 3]
    assert_equal [[0, 1, 1, 1]], posted.fetch(15)
    assert_equal 1, rows(route: "POST /").select { |row| [15, 16].include?(row.line) }.map(&:digest).uniq.size, "lists of any length are alike"
    assert_equal file("page.rb"), rows(route: "GET /slow").first.path
    assert_equal 1, by_line.fetch(18).sum { |row| row[2] }, "what no request asked has its line, too"
    slow = rows(route: "GET /slow").first
    assert_operator slow.ns, :>, 0
    assert_no_text
  end

  # Neither text nor values are in the file.
  def assert_no_text
    strings = recorded.flat_map(&:strings)
    assert_empty(strings.grep(/select\b.*\bfrom\b|secret|nowhere\b/i))
  end

  def report(*arguments)
    result = pitwall("report", "a.pit", *arguments)
    assert_equal 0, result.status.exitstatus, result.err
    result.out
  end

  SEQUEL = <<~'RUBY'
    def page(books) = books.each { |book| DB[:authors].first(id: book[:author_id]) }
    2.times do
      Pitwall.request(route: "GET /slow") do
        page(DB[:books].limit(30).all)
      end
    end
    Pitwall.request(route: "GET /broken") { DB["SELECT secret FROM nowhere"].all rescue print "raised " }
    puts DB[:books].count
  RUBY

  def test_sequel
    result = record_database("sequel", SEQUEL)
    assert_equal ["raised 80\n", 0], [result.out, result.status.exitstatus], result.err
    assert_equal({ 1 => [[0, 2, 60, 30]], 4 => [[0, 2, 2, 1]] }, by_line(route: "GET /slow"))
    assert_equal({ 7 => [[0, 1, 1, 1]] }, by_line(route: "GET /broken"))
    assert_equal [1], by_line.fetch(8).map { |row| row[2] }
    assert_no_text
  end

  # Planted: one route asks for each book's author, the other for all at once. The first of them takes long enough to be told.
  PLANTED = <<~'RUBY'
    def slow = Book.limit(60).map { |book| book.author.name }
    def fine = Book.includes(:author).limit(60).map { |book| book.author.name }
    times = Integer(ENV.fetch("TIMES"))
    times.times { Pitwall.request(route: ENV.fetch("ROUTE")) { send(ENV.fetch("ROUTE")) } }
  RUBY

  def finding(route)
    result = record_database("active_record", PLANTED, "--format", "json", "--out", "-", env: { "ROUTE" => route, "TIMES" => "40" })
    assert_equal 0, result.status.exitstatus, result.err
    JSON.parse(result.out)["findings"].find { |one| one["kind"] == "repeated_queries" }
  end

  def test_planted
    found = finding("slow")
    assert found, "no finding"
    assert_equal [file("page.rb"), 1, 60, 40, { "route" => "slow" }], [found["path"], found["line"], found["figures"]["queries"], found["figures"]["requests"], found["label"]]
    assert_match(/\Aslow ran 60 queries a request from Object#slow, \S*page\.rb:1, the same but for their values; that line takes \d+% of its time/, found["text"])
    shown = pitwall(*Shellwords.split(found["more"]).drop(1))
    assert_equal 0, shown.status.exitstatus, shown.err
    assert_match(/^ *2,400 +60 +60 .* block in Object#slow +page\.rb:1$/, shown.out)
    assert_match(/^2,440 queries in 40 requests \(61 a request\)/, shown.out)
  end

  def test_nothing_planted = assert_nil(finding("fine"))

  # With the driver alone there are no counts, and a share of the time.
  def test_the_driver_alone
    source = <<~'RUBY'
      require "bundler/setup"
      require "sqlite3"
      db = SQLite3::Database.new(":memory:")
      limit = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + 0.3
      db.execute("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 20000) SELECT sum(x) FROM c") while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < limit
    RUBY
    File.write(file("app.rb"), source)
    result = pitwall("profile", "--mode", "signal", "--quiet", "--record", "a.pit", "--", RUBY, "-W0", "app.rb", env: GEMS)
    assert_equal 0, result.status.exitstatus, result.err
    refute_predicate queries, :any?
    assert_match(/no queries were recorded.*% of the time .* is in methods of a\s+database.s driver/m, report("--view", "queries"))
    shown = JSON.parse(report("--view", "queries", "--format", "json"))["queries"]
    assert_equal [false, []], shown.values_at("counted", "lines")
    assert_operator shown["driver_ns"], :>, 0
    assert_operator shown["driver_of_ns"], :>, shown["driver_ns"]
  end

  # The example application through its whole stack: what its own subscriber counts.
  def test_a_rails_application
    File.write(file("drive.rb"), <<~'RUBY')
      require "bundler/setup"
      $LOAD_PATH.unshift(ENV.fetch("TEST_PITWALL"))
      require "pitwall/rack"
      require ENV.fetch("SHOP") + "/boot"
      require ENV.fetch("SHOP") + "/config/environment"
      Shop::Database.prepare
      app = Pitwall::Rack::Requests.new(Rails.application)
      counts = Hash.new(0)
      ActiveSupport::Notifications.subscribe("sql.active_record") { |*, payload| counts[payload[:cached] ? "cached" : payload[:name] == "SCHEMA" ? "schema" : "asked"] += 1 }
      ask = -> { Rack::MockRequest.new(app).get("/search?q=wheel", "REMOTE_ADDR" => "127.0.0.1").status }
      ask.call
      counts.clear
      Pitwall.pause
      Pitwall.resume
      puts [3.times.map { ask.call }.uniq, counts["asked"], counts["cached"]].inspect
    RUBY
    env = GEMS.merge("SHOP" => SHOP, "SHOP_TMP" => file("tmp"), "SHOP_DATABASE" => file("shop.sqlite3"), "TEST_PITWALL" => ENV["TEST_LIB"] || File.join(Checkout::ROOT, "lib"))
    Dir.mkdir(file("tmp"))
    result = pitwall("profile", "--mode", "signal", "--quiet", "--record", "a.pit", "--", RUBY, "-W0", "drive.rb", env: env)
    assert_equal 0, result.status.exitstatus, result.err
    statuses, asked, cached = JSON.parse(result.out.lines.last)
    assert_equal [200], statuses
    segment = recorded.last
    total = Pitwall::Analyse::Queries.new([segment]).total
    assert_equal [3, asked, cached], [total.requests, total.count, total.cached]
    repeated = Pitwall::Analyse::Queries.new([segment]).rows.max_by(&:most)
    assert_equal File.join(SHOP, "app/models/product.rb"), repeated.path, "asked for each product"
    requests = Pitwall::Analyse::Requests.new([segment]).rows
    each = requests.map { |row| Pitwall::Analyse::Queries.sum(Pitwall::Analyse::Queries.new([segment]).of_request(row)) }
    assert_equal [asked, cached], [each.sum(&:count), each.sum(&:cached)]
    assert_equal ["searches#show"], requests.map { |row| row.labels["route"] }.uniq
  end
end
