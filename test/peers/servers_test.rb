# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/puma_program"
require "json"
require "pitwall/analyse"

# Real Puma (a cluster) and real Sidekiq, where the benchmarks have installed them.
class ServersTest < Minitest::Test
  include PumaProgram

  # By signals: a reader on another core may come late on a busy machine.
  def settings = { mode: "signal" }

  def test_a_cluster
    record = 'Pitwall.continuous(dir: "d", rate: 1000)'
    ["preload_app!\n#{record}\n", "before_worker_boot { #{record} }\n"].each_with_index do |continuous, number|
      FileUtils.rm_rf(file("d"))
      with_puma("require 'pitwall'\nworkers 2\n#{continuous}") do
        workers = Array.new(80) { |n| get("/slow/#{n}").last } | Array.new(20) { get("/orders/7").last }
        assert_equal 403, get("/pitwall/status", Host: "evil.example").first
        refused = get("/pitwall/status")
        assert_equal 401, refused.first, refused.last
        authorization = { Authorization: "Bearer #{File.read(file("d/token")).strip}" } if File.exist?(file("d/token"))
        assert authorization, "the endpoint makes a token"
        assert_equal 200, get("/pitwall/status", **authorization).first
        assert_equal 200, get("/pitwall/rotate", post: true, **authorization).first
        sleep 0.05 until workers.all? { |pid| Dir[file("d/*-#{pid}-*.pit")].size >= 2 }
        get("/slow/1")
      end
      recorded = segments
      works = recorded.each_with_object(Hash.new(0)) { |segment, sums| segment.works.each { |work| sums[segment.labels(work.label_id)["route"]] += work.count } }
      assert_includes 81..85, works["GET /slow/:id"], "#{number}: #{works}"
      assert_equal 20, works["GET /orders/:id"]
      cpu = recorded.each_with_object(Hash.new(0)) { |segment, sums| segment.tallies.each { |tally| sums[segment.labels(tally.label_id)["route"]] += tally.cells.each_slice(3).sum { |cell| cell[1] } * segment.unit_ns } }
      assert_operator cpu["GET /slow/:id"], :>, cpu["GET /orders/:id"] * 5
      assert_sampled("#<Rack::Builder>.fib (config.ru:4)", recorded)
      # Which was the slowest depends on the machine's other work.
      listed = Pitwall::Analyse::Requests.new(recorded).rows
      assert_includes listed.map(&:name), "route=GET /slow/:id"
      assert_equal listed.map(&:duration_ns).sort.reverse, listed.map(&:duration_ns)
    end
  end

  def test_sidekiq
    redis = ["/usr/bin/redis-server", "/usr/local/bin/redis-server"].find { |path| File.executable?(path) } or skip "redis-server is not installed"
    options = ["--enable=gems", *paths("connection_pool", "redis-client", "rack", "logger", "base64", "sidekiq").map { |path| "-I#{path}" }]
    server = Process.spawn(redis, "--port", "0", "--unixsocket", file("redis.sock"), "--save", "", "--dir", @dir, out: File::NULL, err: File::NULL)
    eventually { File.exist?(file("redis.sock")) }
    run_program(<<~RUBY, options: options)
      $VERBOSE = nil
      require "sidekiq"
      require "sidekiq/api"
      require "sidekiq/embedded"
      require "pitwall/sidekiq"
      Sidekiq.logger.level = Logger::ERROR
      class HardJob
        include Sidekiq::Job
        def perform(secret) = burn(0.03)
      end
      config = ->(c) { c.redis = { url: "unix://#{file("redis.sock")}" } }
      Sidekiq.configure_client(&config)
      5.times { |n| HardJob.perform_async("secret \#{n}") }
      start
      server = Sidekiq.configure_embed do |c|
        config.call(c)
        c.concurrency = 2
        c.server_middleware { |chain| chain.add Pitwall::Sidekiq::Jobs }
      end
      server.run
      deadline = now + 120
      sleep 0.05 until Sidekiq::Stats.new.processed >= 5 || now > deadline
      server.stop
      stop
    RUBY
    refute segment.strings.any? { |string| string.include?("secret ") }
    assert_equal({ { "job" => "HardJob", "queue" => "default" } => 5 }, segment.works.to_h { |work| [segment.labels(work.label_id), work.count] })
    job = segment.tallies.sum { |tally| segment.labels(tally.label_id)["job"] == "HardJob" ? tally.cells.each_slice(3).sum(&:first) * segment.unit_ns : 0 }
    assert_operator job, :>=, 100_000_000
  ensure
    if server
      Process.kill(:TERM, server)
      Process.wait(server)
    end
  end
end
