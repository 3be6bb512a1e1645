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
    # one that never does. The boot of examples/shop is a fresh process each time. A round runs every way once, in
    # random order.
    #
    # CPU times vary by more than the goals allow. So callgrind also counts the instructions of 24 warm requests,
    # without garbage collection, and of a boot.
    class Cost
      OPTIONS = { "counters" => { "blame" => "0" }, "methods" => { "lines" => "0" }, "usual" => { "lines" => "quiet" },
                  "after requests" => { "lines" => "quiet", "lines_after" => "20" },
                  "lines" => { "lines" => "1" } }.freeze
      IN_TURNS = %w[counters methods].freeze
      BESIDE = ["usual", "after requests", "lines"].freeze
      # What runs => work of one turn, about a quarter of a second.
      LOADS = { "call_heavy" => 40, "web_like" => 150, "warm" => 18 }.freeze
      QUICK = { "call_heavy" => 1, "web_like" => 5, "warm" => 12 }.freeze
      # [what runs, way] => at most so many times
      MOST = { %w[call_heavy counters] => 1.02, %w[web_like counters] => 1.02, %w[boot counters] => 1.02,
               %w[boot usual] => 1.5 }.freeze
      # of instructions of warm requests
      MOST_INSTRUCTIONS = { "counters" => 1.02, "methods" => 1.1, "after requests" => 1.1 }.freeze
      INSTRUCTIONS_OF = 24 # requests
      MOST_BOOT_INSTRUCTIONS = { "counters" => 1.02 }.freeze
      # of fresh processes
      ROUNDS = 12
      # of processes that record every other turn
      TURNS_ROUNDS = 4
      PAIRS = 16
      # of a process that stands beside another
      TURNS = 5
      # CPU time after the start that does not count: until then lines are compared even if they change nothing.
      LEAD_S = 0.8
      private_constant :OPTIONS, :IN_TURNS, :BESIDE, :LOADS, :QUICK, :MOST, :MOST_INSTRUCTIONS, :INSTRUCTIONS_OF,
                       :MOST_BOOT_INSTRUCTIONS, :ROUNDS, :TURNS_ROUNDS, :PAIRS, :TURNS, :LEAD_S

      # Prints CPU times of turns: "off on" of each pair of turns, or those of turns that are all recorded, or none.
      CHILD = <<~'RUBY'
        $LOAD_PATH.unshift(ARGV.fetch(0))
        require "pitwall"
        load_name, amount, turns, file = ARGV[1], Integer(ARGV[2]), Integer(ARGV[3]), ARGV[4]
        options, lead, pairs = eval(ARGV[5]), Float(ARGV[6]), ARGV[7] == "pairs"
        counted = ARGV[7] == "instructions"
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
        if counted
          start.call if options
          2.times { run.call(amount) }
          GC.start
          GC.disable
          system("callgrind_control", "--instr=on", Process.pid.to_s, out: File::NULL)
          run.call(amount)
          system("callgrind_control", "--instr=off", Process.pid.to_s, out: File::NULL)
          Pitwall.stop if options
        elsif pairs
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
        counts, boot_counts = prepared && valgrind?(notes) ? [instructions, boot_instructions] : [{}, {}]
        Result.new(tables: [table(ratios), *counts_table("#{INSTRUCTIONS_OF} warm requests", counts),
                            *counts_table("a boot", boot_counts)],
                   goals: MOST.map { |(load, way), most| goal(ratios, load, way, most) } +
                          MOST_INSTRUCTIONS.map { |way, most| counts_goal("warm requests", counts, way, most) } +
                          MOST_BOOT_INSTRUCTIONS.map { |way, most| counts_goal("a boot", boot_counts, way, most) },
                   notes: notes, data: ratios.merge("instructions" => counts, "boot instructions" => boot_counts))
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

      def valgrind?(notes)
        return false if @context.quick? # it takes minutes
        return true if system("valgrind", "--version", out: File::NULL, err: File::NULL)

        notes << "valgrind is not installed: instructions were not counted"
        false
      end

      # @return [Hash{String => Integer}] by way and "none", instructions of warm requests
      def instructions
        ["none", *OPTIONS.keys].to_h do |way|
          count = counted("--instr-atstart=no") do |under|
            child("warm", OPTIONS[way], 1, 0, "instructions", under: under)
          end
          [way, count]
        end
      end

      # @return [Hash{String => Integer}] by way and "none", instructions of a boot
      def boot_instructions
        ["none", *MOST_BOOT_INSTRUCTIONS.keys].to_h do |way|
          # callgrind warns of signals that it does not know
          [way, counted { |under| Shop.start(boot_settings(OPTIONS[way]), under: under, err: File::NULL) }]
        end
      end

      # @yieldparam under [Array<String>] the words of a command that counts what runs under it
      def counted(*options)
        @context.scratch("caches-callgrind") do |out|
          yield ["valgrind", "-q", "--tool=callgrind", *options, "--callgrind-out-file=#{out}"]
          @context.progress
          text = File.read(out)
          Integer(text[/^totals: (\d+)/, 1] || text[/^summary: (\d+)/, 1])
        end
      end

      # @return [Array<Array<Float>>] the numbers of each line that a child prints
      def child(load, options, turns, lead, how, under: [])
        @context.scratch("caches-#{load}") do |file|
          amount = how == "instructions" ? INSTRUCTIONS_OF : (@context.quick? ? QUICK : LOADS).fetch(load)
          words = [*under, RbConfig.ruby, "-W0", "-e", CHILD, File.join(ROOT, "lib"), load, amount.to_s,
                   turns.to_s, file,
                   options.inspect, lead.to_s, how]
          env = load == "warm" ? Shop.environment : {}
          quiet = under.empty? ? {} : { err: File::NULL } # callgrind warns of signals that it does not know
          output = IO.popen([env, *words, { chdir: load == "warm" ? Shop::FOLDER : ROOT, **quiet }], &:read)
          raise Context::Failure, "the process of #{load} failed" unless $?.success?

          output.lines.map { |line| line.split.map(&:to_f) }
        end
      end

      def boots
        ways = OPTIONS.keys - ["after requests"]
        rounds = Rounds.take(@context, ["none", *ways], @context.rounds(ROUNDS)) { |way| boot(OPTIONS[way]) }
        ways.to_h { |way| [way, rounds.map { |round| round.fetch(way).fdiv(round.fetch("none")) }] }
      end

      def boot(options) = Shop.cpu_of_start(boot_settings(options))

      def boot_settings(options) = options&.transform_keys { |name| :"caches.#{name}" }

      def table(ratios)
        rows = ratios.map do |load, found|
          [load, *OPTIONS.keys.map { |way| found[way] ? show(Statistics.ratio(found[way])) : "–" }]
        end
        Table.new("CPU time, recorded divided by not recorded (95% intervals)", ["", *OPTIONS.keys], rows)
      end

      def counts_table(what, counts)
        return [] if counts.empty?

        rows = counts.map { |way, count| [way, count, format("%.3f", count.fdiv(counts.fetch("none")))] }
        [Table.new("instructions of #{what}", ["", "instructions", "ratio"], rows)]
      end

      def counts_goal(what, counts, way, most)
        text = "instructions of #{what}, #{way}: at most #{most} times"
        return Goal.not_measured(text) unless counts.key?(way)

        ratio = counts[way].fdiv(counts.fetch("none"))
        Goal.new(text, format("%.3f", ratio), ratio <= most)
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
