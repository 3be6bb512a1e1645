# frozen_string_literal: true

require "net/http"
require_relative "recorded_program"
require_relative "../../benchmarks/support/peers"

# A real Puma, where the benchmarks have installed it.
module PumaProgram
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
    eventually { get("/up").first == 200 rescue false }
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
end
