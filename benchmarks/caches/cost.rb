# frozen_string_literal: true

require_relative "../support/rounds"
require_relative "../support/result"
require_relative "../support/shop"
require_relative "../support/statistics"

module Benchmarks
  module Caches
    # What watching caches costs, in CPU time: counting alone, blame by methods (--no-lines), as usual (lines until they
    # change nothing), and by all lines (--lines). Two synthetic programs and the warm requests of examples/shop.
    #
    # Counting and methods leave nothing behind, so a process records every other turn. What Ruby does to code whose
    # lines were watched stays until the process ends: for these ways a process that records all the time stands beside
    # one that never does. The boot of examples/shop is a fresh process each time. A round runs every way once, in random
    # order.
    class Cost
      OPTIONS = { "counters" => { "blame" => "0" }, "methods" => { "lines" => "0" }, "usual" => { "lines" => "quiet" },
                  "lines" => { "lines" => "1" } }.freeze
      IN_TURNS = %w[counters methods].freeze
      BESIDE = %w[usual lines].freeze
      # What runs => work of one turn, about a quarter of a second.
      LOADS = { "call_heavy" => 40, "web_like" => 150, "warm" => 18 }.freeze
      QUICK = { "call_heavy" => 1, "web_like" => 5, "warm" => 12 }.freeze
      # [what runs, way] => at most so many times
      MOST = { %w[call_heavy counters] => 1.02, %w[web_like counters] => 1.02, %w[boot counters] => 1.02,
               %w[warm counters] => 1.02, %w[boot usual] => 1.5, %w[warm usual] => 1.1 }.freeze
      # of fresh processes
      ROUNDS = 12
      # of processes that record every other turn
      TURNS_ROUNDS = 4
      PAIRS = 16
      # of a process that stands beside another
      TURNS = 5
      # CPU time after the start that does not count: until then lines are compared even if they change nothing.
      LEAD_S = 0.8
      private_constant :OPTIONS, :IN_TURNS, :BESIDE, :LOADS, :QUICK, :MOST, :ROUNDS, :TURNS_ROUNDS, :PAIRS, :TURNS,
                       :LEAD_S

      # Prints CPU times of turns: "off on" of each pair of turns, or those of turns with the recording that was asked for.
      CHILD = <<~'RUBY'
        $LOAD_PATH.unshift(ARGV.fetch(0))
        require "pitwall"
        load_name, amount, turns, file = ARGV[1], Integer(ARGV[2]), Integer(ARGV[3]), ARGV[4]
        options, lead, pairs = eval(ARGV[5]), Float(ARGV[6]), ARGV[7] == "pairs"
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
        turn = lambda do
          GC.start
          began = clock.call
          run.call(amount)
          clock.call - began
        end
        start = -> { Pitwall.start(record: file, mode: "none", gc: false, collectors: { "caches" => options }) }
        2.times { run.call(amount) }
        if pairs
          recorded = lambda do
            start.call
            run.call((amount / 3.0).ceil) # the caches of methods that have just been replaced fill again
            turn.call
          ensure
            Pitwall.stop
          end
          plain = lambda do
            run.call((amount / 3.0).ceil)
            turn.call
          end
          turns.times do |i|
            if i.even? then off = plain.call
                            on = recorded.call
            else on = recorded.call
                 off = plain.call
            end
            puts "#{off} #{on}"
          end
        else
          start.call if options
          until_ns = clock.call + lead * 1e9
          run.call(amount) while clock.call < until_ns
          turns.times { puts turn.call }
          Pitwall.stop if options
        end
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
      def ratios_of(load) = in_turns(load).merge(beside(load))

      def in_turns(load)
        rounds = Rounds.take(@context, IN_TURNS, @context.rounds(TURNS_ROUNDS)) do |way|
          pairs = child(load, OPTIONS.fetch(way), @context.quick? ? 1 : PAIRS, 0, "pairs")
          Statistics.median(pairs.map { |off, on| on / off })
        end
        IN_TURNS.to_h { |way| [way, rounds.map { |round| round.fetch(way) }] }
      end

      def beside(load)
        turns, lead = @context.quick? ? [1, 0] : [TURNS, LEAD_S]
        rounds = Rounds.take(@context, ["none", *BESIDE], @context.rounds(ROUNDS)) do |way|
          Statistics.median(child(load, OPTIONS[way], turns, lead, "alone").flatten)
        end
        BESIDE.to_h { |way| [way, rounds.map { |round| round.fetch(way) / round.fetch("none") }] }
      end

      # @return [Array<Array<Float>>] the numbers of each line that a child prints
      def child(load, options, turns, lead, how)
        @context.scratch("caches-#{load}") do |file|
          amount = (@context.quick? ? QUICK : LOADS).fetch(load)
          words = [RbConfig.ruby, "-W0", "-e", CHILD, File.join(ROOT, "lib"), load, amount.to_s, turns.to_s, file,
                   options.inspect, lead.to_s, how]
          env = load == "warm" ? Shop.environment : {}
          output = IO.popen([env, *words, { chdir: load == "warm" ? Shop::FOLDER : ROOT }], &:read)
          raise Context::Failure, "the process of #{load} failed" unless $?.success?

          output.lines.map { |line| line.split.map(&:to_f) }
        end
      end

      def boots
        rounds = Rounds.take(@context, ["none", *OPTIONS.keys], @context.rounds(ROUNDS)) { |way| boot(OPTIONS[way]) }
        OPTIONS.keys.to_h { |way| [way, rounds.map { |round| round.fetch(way).fdiv(round.fetch("none")) }] }
      end

      def boot(options) = Shop.cpu_of_start(options&.transform_keys { |name| :"caches.#{name}" })

      def table(ratios)
        rows = ratios.map { |load, found| [load, *OPTIONS.keys.map { |way| show(Statistics.ratio(found.fetch(way))) }] }
        Table.new("CPU time, recorded divided by not recorded (95% intervals)", ["", *OPTIONS.keys], rows)
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
