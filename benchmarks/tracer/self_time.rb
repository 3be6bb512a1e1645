# frozen_string_literal: true

require_relative "../programs/known_methods"
require_relative "../support/result"
require_relative "../support/rounds"
require_relative "../support/statistics"

module Benchmarks
  module Tracer
    # The error of self times: what the tracer says of a call of methods, blocks and C functions whose cost is known.
    # The cost was measured in the same process before, by the CPU clock, and is scaled to the machine's speed under the
    # tracer. A round is a fresh process.
    class SelfTime
      ROUNDS = 7
      # Up to so many ns a call the error may be so many ns; above, such a part.
      SMALL_NS = 1_000
      NS = 25
      PART = 0.05
      CASE = "trace_cpu"
      TURN_NS = 2_000_000
      private_constant :ROUNDS, :SMALL_NS, :NS, :PART, :CASE, :TURN_NS

      # The error's unit is ns up to SMALL_NS, a part of the plain time above.
      Row = Struct.new(:name, :plain, :traced, :error) do
        def small? = plain < SMALL_NS
        def ns = error.map { |part| small? ? part : part * plain }
      end
      private_constant :Row

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        available = @context.available([CASE])
        return Result.new(tables: [], goals: goals([]), notes: @context.notes, data: {}) if available.empty?

        found = Rounds.take(@context, available, @context.rounds(ROUNDS)) { |name| once(name) }
        rounds = found.filter_map { |round| round[CASE] }
        rows = Programs::KnownMethods::NAMES.map { |name| row(name.to_sym, rounds) }
        Result.new(tables: [table(rows)], goals: goals(rows), notes: @context.notes, data: { rounds: rounds })
      end

      private

      def once(name)
        @context.scratch(name) do |out|
          run = @context.child(profiler: name, measure: "known", program: "known_methods", out: out,
                               ns: @context.quick? ? 20_000 : TURN_NS)
          next unless run

          { plain: run[:plain].transform_values { |ns| ns * run[:slower] }, slower: run[:slower],
            traced: traced(out, run[:calls]) }
        end
      end

      # Self ns a call of what each caller calls.
      def traced(file, calls)
        $LOAD_PATH.unshift(File.join(ROOT, "lib")) unless $LOAD_PATH.include?(File.join(ROOT, "lib"))
        require "pitwall/record"
        require "pitwall/analyse"
        tree = Pitwall::Analyse::CallTreeBuilder.build(Pitwall::Record.read(file).segments, weights: %i[cpu calls])
        sums = calls.to_h { |name, _| [name, [0, 0]] }
        (1...tree.size).each do |node|
          name = known(tree, node) or next
          sums[name][0] += tree.selfs(:cpu)[node]
          sums[name][1] += tree.selfs(:calls)[node]
        end
        sums.to_h do |name, (ns, count)|
          raise Context::Failure, "#{name}: #{count} calls were traced of #{calls[name]}" unless count == calls[name]

          [name, ns.fdiv(count)]
        end
      end

      # A method goes by its own name, a block and a C function by their caller's.
      def known(tree, node)
        own, above = [node, tree.parents[node]].map { |at| tree.methods[tree.node_methods[at]].name }
        case own
        when /\bruby_\d+\z/ then own[/\w+\z/].to_sym
        when /\Ablock in .*call_(block_\d+)\z/ then $1.to_sym
        when /\bsum\z/ then above[/call_(c_\d+)\z/, 1]&.to_sym
        end
      end

      def row(name, rounds)
        plain, traced = %i[plain traced].map { |kind| Statistics.median(rounds.map { |round| round[kind][name] }) }
        errors = rounds.map { |round| round[:traced][name] - round[:plain][name] }
        errors = rounds.zip(errors).map { |round, error| error / round[:plain][name] } if plain >= SMALL_NS
        Row.new(name, plain, traced, Statistics.estimate(errors))
      end

      def table(rows)
        shown = rows.map do |row|
          [row.name, format("%.1f", row.plain), format("%.1f", row.traced),
           format("%+.1f (%+.1f … %+.1f)", *row.ns.to_a.first(3)),
           format("%+.1f%%", (row.traced / row.plain - 1) * 100)]
        end
        Table.new("Self time of a call, ns (medians of rounds; 95% intervals of the error)",
                  ["called", "plain", "traced", "error, ns", "error, %"], shown)
      end

      def goals(rows)
        texts = ["self times of calls under #{SMALL_NS / 1000} µs are within #{NS} ns",
                 "those above within #{(PART * 100).round}%"]
        return texts.map { |text| Goal.not_measured(text) } if rows.empty? || @context.quick?

        small, large = rows.partition(&:small?)
        [goal(texts[0], small, NS) { |row| format("%+.1f ns", row.error.point) },
         goal(texts[1], large, PART) { |row| format("%+.1f%%", row.error.point * 100) }]
      end

      # Of the worst: met where all intervals lie inside, missed where one lies outside.
      def goal(text, rows, most)
        return Goal.not_measured(text) if rows.empty?

        worst = rows.max_by { |row| row.error.point.abs }
        inside = rows.all? { |row| [row.error.low, row.error.high].all? { |bound| bound.abs <= most } }
        outside = rows.any? { |row| row.error.low > most || row.error.high < -most }
        Goal.new(text, "at worst #{yield(worst)} (#{worst.name})", inside ? true : (outside ? false : nil))
      end
    end
  end
end
