# frozen_string_literal: true

require_relative "../support/rounds"
require_relative "../support/result"
require_relative "../support/shop"
require_relative "../support/statistics"

module Benchmarks
  module Caches
    # What watching caches costs, in CPU time: counting alone, blame by methods (--no-lines), as usual (lines until they
    # change nothing), and by all lines (--lines). Two synthetic programs and the warm requests of examples/shop run in
    # a process that first runs without recording: what Ruby does to code whose lines were watched stays until the
    # process ends. The boot of examples/shop is a fresh process each time. A round runs every way once, in random
    # order.
    class Cost
      WAYS = { "counters" => { "blame" => "0" }, "methods" => { "lines" => "0" }, "usual" => { "lines" => "quiet" },
               "lines" => { "lines" => "1" } }.freeze
      # What runs => [work of one turn, the same in a quick pass]. warm: requests of the shop, once the shop has booted.
      LOADS = { "call_heavy" => [40, 1], "web_like" => [150, 5], "warm" => [20, 13] }.freeze
      # [what runs, way] => at most so many times
      MOST = { %w[call_heavy counters] => 1.02, %w[web_like counters] => 1.02, %w[boot counters] => 1.02,
               %w[warm counters] => 1.02, %w[boot usual] => 1.5, %w[warm usual] => 1.1 }.freeze
      ROUNDS = 8
      # Of one process, before the start and after it.
      TURNS = 3
      # CPU time after the start that does not count: until then lines are compared even if they change nothing.
      LEAD_S = 0.6
      private_constant :WAYS, :LOADS, :MOST, :ROUNDS, :TURNS, :LEAD_S

      # Prints the medians of CPU time of a turn, without and with recording.
      CHILD = <<~'RUBY'
        $LOAD_PATH.unshift(ARGV.fetch(0))
        require "pitwall"
        load_name, amount, turns, file = ARGV[1], Integer(ARGV[2]), Integer(ARGV[3]), ARGV[4]
        options, lead = eval(ARGV[5]), Float(ARGV[6])
        if load_name == "warm"
          require File.join(Dir.pwd, "boot")
          require File.join(Dir.pwd, "config/environment")
          Shop::Database.prepare
          browser = Rack::MockRequest.new(Rails.application)
          pages = %w[/ /products/7 /products.json /products/8.json /search?q=carbon /categories/brakes?sort=price]
          visit = lambda do |path|
            status = browser.get(path, "REMOTE_ADDR" => "127.0.0.1").status
            raise "#{path}: #{status}" unless status == 200
          end
          run = ->(n) { n.times { |i| visit.call(pages[i % pages.size]) } }
        else
          require File.join(Dir.pwd, "benchmarks/programs", load_name)
          program = Programs.const_get(load_name.split("_").map(&:capitalize).join).new
          run = ->(n) { program.run(n) }
        end
        clock = -> { Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond) }
        median = lambda do
          times = Array.new(turns) { GC.start; began = clock.call; run.call(amount); clock.call - began }
          times.sort[turns / 2]
        end
        2.times { run.call(amount) }
        off = median.call
        Pitwall.start(record: file, mode: "none", gc: false, collectors: { "caches" => options })
        until_ns = clock.call + lead * 1e9
        run.call(amount) while clock.call < until_ns
        on = median.call
        Pitwall.stop
        puts "#{off} #{on}"
      RUBY
      private_constant :CHILD

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        prepared = Shop.prepared?
        notes = prepared ? [] : ["#{Shop::MISSING}: it was not measured"]
        ratios = LOADS.keys.reject { |load| load == "warm" && !prepared }.to_h { |load| [load, ratios_of(load)] }
        ratios["boot"] = boots if prepared
        Result.new(tables: [table(ratios)], goals: MOST.map { |(load, way), most| goal(ratios, load, way, most) },
                   notes: notes, data: ratios)
      end

      private

      # @return [Hash{String => Array<Float>}] by way, the ratios on to off
      def ratios_of(load)
        rounds = Rounds.take(@context, WAYS.keys, @context.rounds(ROUNDS)) { |way| ratio(load, WAYS.fetch(way)) }
        WAYS.keys.to_h { |way| [way, rounds.map { |round| round.fetch(way) }] }
      end

      def ratio(load, options)
        @context.scratch("caches-#{load}") do |file|
          amount = LOADS.fetch(load)[@context.quick? ? 1 : 0]
          turns, lead = @context.quick? ? [1, 0] : [TURNS, options["lines"] == "quiet" ? LEAD_S : 0]
          words = [RbConfig.ruby, "-W0", "-e", CHILD, File.join(ROOT, "lib"), load, amount.to_s, turns.to_s, file,
                   options.inspect, lead.to_s]
          env = load == "warm" ? Shop.environment : {}
          output = IO.popen([env, *words, { chdir: load == "warm" ? Shop::FOLDER : ROOT }], &:read)
          raise Context::Failure, "the process of #{load} failed" unless $?.success?

          off, on = output.split.map(&:to_f)
          on / off
        end
      end

      def boots
        rounds = Rounds.take(@context, ["none", *WAYS.keys], @context.rounds(ROUNDS)) { |way| boot(WAYS[way]) }
        WAYS.keys.to_h { |way| [way, rounds.map { |round| round.fetch(way).fdiv(round.fetch("none")) }] }
      end

      def boot(options) = Shop.cpu_of_start(options&.transform_keys { |name| :"caches.#{name}" })


      def table(ratios)
        rows = ratios.map { |load, found| [load, *WAYS.keys.map { |way| show(Statistics.ratio(found.fetch(way))) }] }
        Table.new("CPU time, recorded divided by not recorded (95% intervals)", ["", *WAYS.keys], rows)
      end

      def show(estimate) = estimate.text("%.3f")

      def goal(ratios, load, way, most)
        text = "#{load}, #{way}: at most #{most} times"
        found = ratios.dig(load, way)
        return Goal.not_measured(text) if found.nil? || @context.quick?

        estimate = Statistics.ratio(found)
        Goal.at_most(text, show(estimate), estimate, most)
      end
    end
  end
end
