# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/recorded_program"
require "pitwall/rack"
require "pitwall/sidekiq"

# The middleware by the words of the Rack and Sidekiq protocols; with the real servers in test/peers/servers_test.rb.
class RackTest < Minitest::Test
  include RecordedProgram

  # By signals: a reader on another core may come late on a busy machine.
  def settings = { mode: "signal" }

  def shape(path, method = "GET", script: "") = Pitwall::Rack::Requests.shape({ "REQUEST_METHOD" => method, "PATH_INFO" => path, "SCRIPT_NAME" => script, "QUERY_STRING" => "token=1" })

  def test_paths_lose_what_is_not_code
    { "/" => "GET /", "" => "GET /", "/orders" => "GET /orders", "/orders/1234" => "GET /orders/:id", "/orders/1234/items/" => "GET /orders/:id/items",
      "/users/9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d" => "GET /users/:id", "/posts/my-first-post" => "GET /posts/:id", "/u/bob@example.com" => "GET /u/:id",
      "/assets/app-1f2e.js" => "GET /assets/:id", "/robots.txt" => "GET /robots.txt", "/a//b" => "GET /a/b", "/#{"x" * 40}" => "GET /:id",
      "/a/b/c/d/e/f/g/h" => "GET /a/b/c/d/e/f/…", "/caf\xC3\xA9".b => "GET /:id", "/%2e%2e/<script>" => "GET /:id/:id", "/a/\xFF" => "GET /a/:id" }.each do |path, expected|
      assert_equal expected, shape(path), path
    end
    assert_equal "POST /admin/x", shape("/x", "POST", script: "/admin")
    assert_equal "GET /:id/:id", shape("/\xFF".b, script: "/é")
    assert_equal "OTHER /", shape("/", "EVIL")
  end

  def test_what_frameworks_say
    assert_equal "orders#show", Pitwall::Rack::Requests.route({ "action_dispatch.request.path_parameters" => { controller: "orders", action: "show", id: "7" } })
    assert_equal "GET /x/:id", Pitwall::Rack::Requests.route({ "sinatra.route" => "GET /x/:id" })
    assert_nil Pitwall::Rack::Requests.route({ "action_dispatch.request.path_parameters" => {} })
  end

  REQUESTS = <<~RUBY
    require "pitwall/rack"
    def env(path, **more) = { "REQUEST_METHOD" => "GET", "PATH_INFO" => path, "SCRIPT_NAME" => "" }.merge(more.transform_keys(&:to_s))
  RUBY

  def test_requests
    run_program(REQUESTS + <<~RUBY)
      app = Pitwall::Rack::Requests.new(lambda do |env|
        burn(0.06)
        raise "oops" if env["PATH_INFO"] == "/fails/1"
        env["sinatra.route"] = "GET /orders/:number" if env["PATH_INFO"].start_with?("/orders")
        [200, {}, [env["PATH_INFO"]]]
      end, labels: ->(env) { { tenant: "t" } })
      raise unless app.call(env("/orders/0")) == [200, {}, ["/orders/0"]]
      record do
        4.times { |n| app.call(env("/orders/\#{n}")) }
        2.times { app.call(env("/plain/7")) }
        begin; app.call(env("/fails/1")); rescue => error; raise unless error.message == "oops"; end
        raise unless Pitwall.labels.empty?
      end
    RUBY
    works = segment.works.to_h { |work| [segment.labels(work.label_id), work.count] }
    assert_equal({ { "route" => "GET /orders/:number", "tenant" => "t" } => 4, { "route" => "GET /plain/:id", "tenant" => "t" } => 2, { "route" => "GET /fails/:id", "tenant" => "t" } => 1 }, works)
    walls = segment.tallies.each_with_object(Hash.new(0)) { |tally, sums| tally.each { |_, wall,| sums[segment.labels(tally.label_id)["route"]] += wall * segment.unit_ns } }
    assert_operator walls["GET /orders/:number"], :>=, 150_000_000
    assert_operator walls["(unknown)"], :>=, 100_000_000, "the first of each kind"
  end

  # A request answers what it would without us, whatever the program's own blocks do.
  def test_blocks_that_fail
    result = attempt(REQUESTS + <<~RUBY)
      app = ->(env) { env["PATH_INFO"] == "/raises" ? raise("its own") : [200, {}, ["fine"]] }
      with = ->(**blocks) { Pitwall::Rack::Requests.new(app, **blocks).freeze }
      stacks = [with.(labels: ->(_) {}), with.(labels: ->(_) { [1] }), with.(labels: ->(_) { raise KeyError, "secret" }), with.(labels: ->(_) { { a: BasicObject.new } }),
                with.(route: ->(_) { raise KeyError, "secret" }), with.(route: ->(_) {})]
      record do
        stacks.each do |stack|
          2.times { raise unless stack.call(env("/a/\\xFF")) == [200, {}, ["fine"]] }
          begin; stack.call(env("/raises")); rescue => error; raise unless error.message == "its own"; end
        end
      end
    RUBY
    assert_predicate result.status, :success?, result.err
    assert_equal 3, result.err.lines.size, result.err
    assert_match(/\Apitwall: labels: of Pitwall::Rack::Requests raised KeyError \(program\.rb:\d+.*\): such requests go without$/, result.err)
    refute_match(/secret/, result.err)
    assert_equal({ "GET /a/:id" => 12, "GET /raises" => 6 }, segment.works.each_with_object(Hash.new(0)) { |work, sums| sums[segment.labels(work.label_id)["route"]] += work.count })
  end

  # What was learned of a path in one recording is right in the next, and inside other labels.
  def test_routes_in_the_next_recording
    run_program(REQUESTS + <<~RUBY)
      app = Pitwall::Rack::Requests.new(->(env) { [200, {}, [Pitwall.labels]] }, route: ->(env) { "route of \#{env["PATH_INFO"]}" })
      record { 3.times { app.call(env("/a")) } }
      record("b.pit") do
        Pitwall.label(other: 1) { raise unless app.call(env("/a")).last == [{ other: "1", route: "route of /a" }] }
        app.call(env("/b"))
        2.times { app.call(env("/a")) }
        raise unless app.call(env("/b")).last == [{ route: "route of /b" }] && Pitwall.labels.empty?
      end
    RUBY
    works = ->(of) { of.works.to_h { |work| [of.labels(work.label_id), work.count] } }
    assert_equal({ { "route" => "route of /a" } => 3 }, works.(segment))
    assert_equal({ { "route" => "route of /a", "other" => "1" } => 1, { "route" => "route of /a" } => 2, { "route" => "route of /b" } => 2 }, works.(segment("b.pit")))
  end

  # Rails tells when a controller begins.
  def test_rails_notifications
    run_program(REQUESTS + <<~RUBY)
      module ActiveSupport
        module Notifications
          def self.subscribe(name, &block) = name == "start_processing.action_controller" ? @block = block : raise
          def self.tell(payload) = @block.call("start_processing.action_controller", 1, 2, "id", payload)
        end
      end
      app = Pitwall::Rack::Requests.new(lambda do |env|
        ActiveSupport::Notifications.tell({ params: { "controller" => "orders", "action" => "show", "id" => "secret" } })
        burn(0.1)
        env["action_dispatch.request.path_parameters"] = { controller: "orders", action: "show", id: "secret" }
      end)
      record { app.call(env("/orders/1")) }
    RUBY
    refute_includes segment.strings, "secret"
    assert_equal [["orders#show", 1]], segment.works.map { |work| [segment.labels(work.label_id)["route"], work.count] }
    assert_operator segment.tallies.sum { |tally| segment.labels(tally.label_id)["route"] == "orders#show" ? tally.cells.each_slice(3).sum(&:first) * segment.unit_ns : 0 }, :>=, 80_000_000
  end

  def test_the_endpoint
    out = run_program(REQUESTS + <<~RUBY)
      app = Pitwall::Rack::Control.new(->(env) { [404, {}, ["mine"]] })
      good = { HTTP_HOST: "127.0.0.1:9292", REMOTE_ADDR: "127.0.0.1" }
      ask = lambda { |path, **more| app.call(env(path, **good, **more)).then { |status, headers, body| [status, body.join[0, 90].chomp] } }
      p ask.("/other"), ask.("/pitwall"), ask.("/pitwall/status"), ask.("/pitwall/status", HTTP_AUTHORIZATION: "Bearer ")
      Pitwall.continuous(dir: "d")
      token = File.read("d/token").strip if File.exist?("d/token")
      p token, ask.("/pitwall/status", HTTP_AUTHORIZATION: "Bearer x").first
      token = File.read("d/token").strip
      p ask.("/pitwall/status", HTTP_AUTHORIZATION: "Bearer \#{token}").first, ask.("/pitwall/status", HTTP_AUTHORIZATION: "Bearer \#{token}", HTTP_HOST: "evil.example").first
      p ask.("/pitwall/stop", REQUEST_METHOD: "POST", HTTP_AUTHORIZATION: "Bearer \#{token}").first
    RUBY
    said = ['[404, "mine"]', '[404, "mine"]', '[503, "{\\"error\\":\\"Pitwall.continuous is not on', "[503, ", "nil", "401", "200", "403", "200"]
    assert_equal said.size, out.lines.size
    said.zip(out.lines) { |expected, line| assert line.start_with?(expected), line }
  end

  def test_jobs
    run_program(<<~RUBY)
      require "pitwall/sidekiq"
      chain = Pitwall::Sidekiq::Jobs.new
      raise unless chain.call(nil, { "class" => "HardJob", "args" => ["secret"] }, "default") { 7 } == 7
      record do
        raise unless chain.call(nil, { "class" => "HardJob", "args" => ["secret"] }, "default") { burn(0.05); 7 } == 7
        begin
          chain.call(nil, { "class" => "Wrapper", "wrapped" => "MailJob" }, "low") { raise "oops" }
        rescue RuntimeError
        end
      end
    RUBY
    refute_includes segment.strings, "secret"
    assert_equal({ { "job" => "HardJob", "queue" => "default" } => 1, { "job" => "MailJob", "queue" => "low" } => 1 }, segment.works.to_h { |work| [segment.labels(work.label_id), work.count] })
  end
end
