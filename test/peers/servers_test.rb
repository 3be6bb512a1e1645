# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/recorded_program"
require_relative "../../benchmarks/support/peers"
require "json"
require "net/http"
require "pitwall/analyse"

# Real Puma (a cluster) and real Sidekiq, where the benchmarks have installed them.
class ServersTest < Minitest::Test
  include RecordedProgram

  APP = <<~RUBY
    require "pitwall/rack"
    use Pitwall::Rack::Requests
    use Pitwall::Rack::Control
    def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
    run(lambda do |env|
      env["PATH_INFO"].start_with?("/slow") ? fib(24) : fib(8)
      [200, { "content-type" => "text/plain" }, [Process.pid.to_s]]
    end)
  RUBY

  def paths(*names)
    missing = names.find { |name| gems.missing(name) }
    skip "#{missing} is not installed (benchmarks/run servers/puma does that)" if missing
    names.flat_map { |name| gems.paths(name) }
  end

  def gems = @gems ||= Benchmarks::Peers.new

  def get(path, **headers)
    response = Net::HTTP.start("127.0.0.1", @port, open_timeout: 30, read_timeout: 60) do |http|
      method = headers.delete(:post) ? Net::HTTP::Post : Net::HTTP::Get
      http.request(method.new(path, headers.transform_keys(&:to_s)))
    end
    [response.code.to_i, response.body]
  end

  def with_puma(config)
    options = paths("nio4r", "rack", "puma").flat_map { |path| ["-I", path] }
    @port = TCPServer.open("127.0.0.1", 0) { |server| server.local_address.ip_port }
    File.write(file("config.ru"), APP)
    File.write(file("puma.rb"), "bind 'tcp://127.0.0.1:#{@port}'\nthreads 2, 2\nsilence_single_worker_warning\n#{config}")
    pid = Process.spawn(environment({}), RUBY, *options, "-I#{File.join(Checkout::ROOT, "lib")}", "-rpuma", "-rpuma/cli", "-e", "Puma::CLI.new(%w[-C puma.rb config.ru]).run",
                        chdir: @dir, out: file("log"), err: %i[child out], pgroup: true)
    600.times { break if (get("/up").first == 200 rescue false); sleep 0.05 }
    yield
    Process.kill(:TERM, pid)
    Process.wait(pid)
    pid = nil
  ensure
    if pid
      Process.kill(:KILL, -pid)
      Process.wait(pid)
      puts File.read(file("log"))
    end
  end

  def segments = Dir[file("d/*.pit")].sort.flat_map { |path| Pitwall::Record.read(path).segments }

  def test_a_cluster
    record = 'Pitwall.continuous(dir: "d", rate: 1000)'
    ["preload_app!\n#{record}\n", "before_worker_boot { #{record} }\n"].each_with_index do |continuous, number|
      FileUtils.rm_rf(file("d"))
      with_puma("require 'pitwall'\nworkers 2\n#{continuous}") do
        workers = Array.new(80) { |n| get("/slow/#{n}").last } | Array.new(20) { get("/orders/7").last }
        assert_equal 403, get("/pitwall/status", Host: "evil.example").first
        assert_equal 401, get("/pitwall/status").first
        authorization = { Authorization: "Bearer #{File.read(file("d/token")).strip}" } if File.exist?(file("d/token"))
        assert authorization, "the endpoint makes a token"
        assert_equal 200, get("/pitwall/status", **authorization).first
        assert_equal 200, get("/pitwall/rotate", post: true, **authorization).first
        sleep 0.1 until workers.all? { |pid| Dir[file("d/*-#{pid}-*.pit")].size >= 2 }
        get("/slow/1")
      end
      recorded = segments
      works = recorded.each_with_object(Hash.new(0)) { |segment, sums| segment.works.each { |work| sums[segment.labels(work.label_id)["route"]] += work.count } }
      assert_includes 81..85, works["GET /slow/:id"], "#{number}: #{works}"
      assert_equal 20, works["GET /orders/:id"]
      walls = recorded.each_with_object(Hash.new(0)) { |segment, sums| segment.tallies.each { |tally| sums[segment.labels(tally.label_id)["route"]] += tally.cells.each_slice(3).sum(&:first) * segment.unit_ns } }
      assert_operator walls["GET /slow/:id"], :>, walls["GET /orders/:id"] * 5
      assert_sampled("#<Rack::Builder>.fib (config.ru:4)", recorded)
      slowest = Pitwall::Analyse::Requests.new(recorded).rows.first
      assert_equal "route=GET /slow/:id", slowest.name.sub("GET /up", "GET /slow/:id")
    end
  end

  # What Puma's threads wait for the next request is in none.
  def test_a_server_that_idles
    idle = 0
    with_puma("require 'pitwall'\nPitwall.continuous(dir: 'd', rate: 1000)\n") do
      10.times { |n| get("/slow/#{n}"); idle += 0.2; sleep 0.2 }
    end
    labelled = segments.sum { |segment| segment.tallies.sum { |tally| segment.labels(tally.label_id).empty? ? 0 : tally.cells.each_slice(3).sum(&:first) * segment.unit_ns } } / 1e9
    took = segments.sum { |segment| segment.works.sum(&:total_ns) } / 1e9
    assert_operator labelled, :<, took + idle / 2
    assert_operator labelled, :>, took * 0.3
  end

  def test_sidekiq
    redis = ["/usr/bin/redis-server", "/usr/local/bin/redis-server"].find { |path| File.executable?(path) } or skip "redis-server is not installed"
    options = ["--enable=gems", *paths("connection_pool", "redis-client", "rack", "logger", "base64", "sidekiq").map { |path| "-I#{path}" }]
    server = Process.spawn(redis, "--port", "0", "--unixsocket", file("redis.sock"), "--save", "", "--dir", @dir, out: File::NULL, err: File::NULL)
    200.times { File.exist?(file("redis.sock")) ? break : sleep(0.05) }
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
      deadline = now + 60
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
