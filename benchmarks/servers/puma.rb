# frozen_string_literal: true

require "fileutils"
require "net/http"
require "socket"
require "tmpdir"
require_relative "../support/result"
require_relative "../support/statistics"
require "pitwall"

module Benchmarks
  module Servers
    # What continuous recording at 100 Hz costs a server at full load. Two Pumas run with the middleware in place, and
    # one of them records. Short windows of as many requests go to one and to the other in turns, so that drift cancels.
    # Then the two change parts, so that differences between the processes cancel, too. Then two fresh ones follow.
    #
    # "Full load": a few connections ask one server at a time without a pause (closed loop), so its threads want the GVL
    # all the time. They fill one core; the load's own process takes some of the other. CPU time that Pitwall's threads
    # use there does not reduce the throughput. On a server whose workers fill all cores it does, so the table has it.
    class Puma
      ROUNDS = 40    # pairs of windows in each part
      PROCESSES = 2  # pairs of servers
      REQUESTS = 60  # in a window
      SETTLE = 500   # requests to the server that has begun to record, before the windows; the first have their own row
      FIRST = 200
      THREADS = 2
      CONNECTIONS = 4
      RATE = 100
      GOAL = 1.01
      MODES = %w[signal outside safepoint].freeze
      LOAD = File.expand_path("../support/http_load.rb", __dir__)
      GEMS = %w[nio4r rack puma].freeze
      GOALS = { wall: "Puma at full load loses at most 1% of its throughput to continuous recording at #{RATE} Hz",
                p99: "and its p99 grows by at most 1%" }.freeze
      ROWS = { wall: "requests a second", cpu: "CPU time a request, all threads, ms", p50: "median, ms",
               p99: "p99, ms" }.freeze
      RESAMPLES = 1000
      private_constant(*constants(false))

      Server = Struct.new(:dir, :port, :pid, :token, keyword_init: true)
      private_constant :Server

      def initialize(context)
        @context = context
        @missing = GEMS.filter_map { |name| context.peers.missing(name)&.then { |why| "#{name}: #{why}" } }.first
      end

      #: () -> Result
      def call
        if @missing
          goals = GOALS.values.map { |text| Goal.not_measured(text) }
          return Result.new(tables: [], goals: goals, notes: [@missing], data: {})
        end

        modes = @context.chosen(MODES)
        modes = [usual] if @context.quick?
        measured = modes.to_h { |mode| [mode, measure(mode)] }
        estimates = measured.transform_values { |parts| estimate(parts) }
        data = measured.transform_values do |parts|
          parts.map { |part| part.transform_values { |windows| windows.map { |window| brief(window) } } }
        end
        Result.new(tables: measured.map { |mode, parts| table(mode, parts, estimates[mode]) },
                   goals: GOALS.map { |name, text| goal(text, estimates[usual], name) },
                   notes: ["the mode of Pitwall.continuous is #{usual}; the goals are of it"], data: data)
      end

      private

      def usual
        Pitwall::Collect::Continuous.unasked_mode
      end

      # [{ off: [window], on: [window], first: [window, window] }]: one for each part of each pair of processes. Parts
      # come in pairs, too.
      def measure(mode)
        Array.new(@context.quick? ? 1 : PROCESSES) do
          Dir.mktmpdir("pitwall-puma-") do |dir|
            IO.popen([RbConfig.ruby, "--disable-gems", LOAD, CONNECTIONS.to_s], "r+") do |load|
              servers(dir, mode) do |pair|
                pair.each { |server| window(load, server, @context.quick? ? 20 : SETTLE) } # caches fill
                [pair, pair.reverse].map { |on, off| part(load, on, off) }
              end
            end
          end
        end.flatten(1)
      end

      def part(load, on, off)
        switch(off, "stop")
        switch(on, "start")
        @context.progress
        first = [off, on].map { |server| window(load, server, @context.quick? ? 10 : FIRST) }
        window(load, on, SETTLE - FIRST) unless @context.quick?
        rounds = Array.new(@context.rounds(ROUNDS)) do
          [[:on, on], [:off, off]].shuffle.to_h do |name, server|
            [name, window(load, server, @context.quick? ? 10 : REQUESTS)]
          end
        end
        { off: rounds.map { |round| round[:off] }, on: rounds.map { |round| round[:on] }, first: first }
      end

      def servers(dir, mode)
        pair = []
        %w[a b].each { |name| pair << spawn_server(File.join(dir, name), mode) }
        pair.each { |server| greet(server) }
        yield pair
      rescue Context::Failure => error
        last_lines = Dir[File.join(dir, "*/log")].flat_map { |log| File.readlines(log).last(3) }
        raise Context::Failure, "#{error.message}: #{last_lines.join(" ")}"
      ensure
        pair.each do |server|
          Process.kill(:TERM, server.pid)
          Process.wait(server.pid)
        end
      end

      def spawn_server(dir, mode)
        Dir.mkdir(dir)
        port = TCPServer.open("127.0.0.1", 0) { |socket| socket.local_address.ip_port }
        File.write(File.join(dir, "puma.rb"), <<~RUBY)
          bind "tcp://127.0.0.1:#{port}"
          threads #{THREADS}, #{THREADS}
          max_keep_alive 1_000_000_000
          require "pitwall"
          Pitwall.continuous(dir: "recordings", rate: #{RATE}, mode: #{mode.inspect})
        RUBY
        File.write(File.join(dir, "config.ru"), <<~RUBY)
          require "pitwall/rack"
          require #{File.join(ROOT, "benchmarks/programs/web_like").inspect}
          use Pitwall::Rack::Control
          use Pitwall::Rack::Requests
          APPS = Hash.new { |apps, thread| apps[thread] = Programs::WebLike.new }
          run ->(_env) { APPS[Thread.current].run(3); [200, { "content-type" => "text/plain" }, ["ok"]] }
        RUBY
        paths = GEMS.flat_map { |name| @context.peers.paths(name) }.flat_map { |path| ["-I", path] }
        pid = spawn(RbConfig.ruby, *paths, "-I", File.join(ROOT, "lib"), "-r", "puma", "-r", "puma/cli",
                    "-e", "Puma::CLI.new(%w[-C puma.rb config.ru]).run",
                    chdir: dir, out: File.join(dir, "log"), err: %i[child out])
        Server.new(dir: dir, port: port, pid: pid)
      end

      def greet(server)
        wait_until { Net::HTTP.get(URI("http://127.0.0.1:#{server.port}/")) == "ok" }
        server.token = Pitwall::Collect::Control.token(File.join(server.dir, "recordings"))
      end

      def switch(server, state)
        ask(server, Net::HTTP::Post, state)
        wait_until { ask(server, Net::HTTP::Get, "status").include?(%("recording":#{state == "start"})) }
      end

      def ask(server, method, action)
        request = method.new("/pitwall/#{action}", "Authorization" => "Bearer #{server.token}")
        Net::HTTP.start("127.0.0.1", server.port) { |http| http.request(request) }.body
      end

      def wait_until
        deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 30
        loop do
          return if begin
            yield
          rescue SystemCallError, EOFError
            false
          end
          if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
            raise Context::Failure, "the server does not answer as it should"
          end

          sleep 0.05
        end
      end

      # { wall:, cpu: in ns, took: [ns] }
      def window(load, server, requests)
        cpu = cpu_of(server)
        began = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
        load.puts("#{server.port} #{requests}")
        took = load.gets.to_s.split.map { |time| Integer(time) }
        raise Context::Failure, "the load did not run" unless took.size == requests

        wall = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - began
        { wall: wall, cpu: cpu_of(server) - cpu, took: took }
      end

      # What its threads ran, in ns: far finer than the clock ticks of /proc/PID/stat.
      def cpu_of(server) = Dir["/proc/#{server.pid}/task/*/schedstat"].sum { |file| File.read(file).to_i }

      # One value is the mean of both parts that a pair of processes played. A difference between the processes is in
      # both parts with opposite signs.
      def estimate(parts)
        means = %i[wall cpu].to_h do |name|
          logs = parts.each_slice(2).flat_map do |pair|
            ratios = pair.map { |part| part[:on].zip(part[:off]).map { |on, off| Math.log(on[name].to_f / off[name]) } }
            ratios.transpose.map { |both| both.sum / 2 }
          end
          [name, Statistics.estimate(logs).map { |log| Math.exp(log) }]
        end
        means.merge(p50: quantile_ratio(parts, 0.5), p99: quantile_ratio(parts, 0.99))
      end

      # Quantiles of all requests of all windows; the interval by drawing windows anew (seeded).
      def quantile_ratio(parts, share)
        windows = parts.flat_map { |part| part[:on].zip(part[:off]) }
        pairs = windows.map { |pair| pair.map { |window| window[:took] } }
        ratio = ->(drawn) { quantile(drawn.flat_map(&:first), share) / quantile(drawn.flat_map(&:last), share).to_f }
        if pairs.size < 3
          return Statistics::Estimate.new(ratio.call(pairs), -Float::INFINITY, Float::INFINITY, pairs.size)
        end

        random = Random.new(1)
        drawn = Array.new(RESAMPLES) { ratio.call(Array.new(pairs.size) { pairs.sample(random: random) }) }
        Statistics::Estimate.new(ratio.call(pairs), quantile(drawn, 0.025), quantile(drawn, 0.975), pairs.size)
      end

      def quantile(values, share) = values.sort[(values.size * share).floor]

      def table(mode, parts, estimates)
        rows = ROWS.map do |name, label|
          figures = %i[off on].map { |turn| format("%.2f", figure(name, parts.flat_map { |part| part[turn] })) }
          [label, *figures, show(estimates[name])]
        end
        first = 2.times.map { |turn| format("%.2f", figure(:p99, parts.map { |part| part[:first][turn] })) }
        rows << ["p99 of the first #{FIRST} requests after the start, ms", *first, ""]
        windows = parts.sum { |part| part[:on].size }
        title = "Mode #{mode}: Puma, #{THREADS} threads, #{CONNECTIONS} connections at full load " \
                "(#{windows} pairs of windows in #{parts.size / 2} pairs of processes that change parts; 95% intervals)"
        Table.new(title, ["", "not recording", "#{RATE} Hz", "cost (ratio)"], rows)
      end

      def figure(name, windows)
        requests = windows.sum { |window| window[:took].size }
        case name
        when :wall then requests * 1e9 / windows.sum { |window| window[:wall] }
        when :cpu then windows.sum { |window| window[:cpu] } / 1e6 / requests
        else quantile(windows.flat_map { |window| window[:took] }, { p50: 0.5, p99: 0.99 }.fetch(name)) / 1e6
        end
      end

      def brief(window)
        window.slice(:wall, :cpu).merge(p50: quantile(window[:took], 0.5), p99: quantile(window[:took], 0.99))
      end

      def show(estimate) = estimate.text("%.4f")

      def goal(text, estimates, name)
        return Goal.not_measured(text) if @context.quick? || estimates.nil?

        Goal.at_most(text, show(estimates[name]), estimates[name], GOAL)
      end
    end
  end
end
