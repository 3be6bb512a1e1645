# frozen_string_literal: true

require "fileutils"
require_relative "../support/removable"
require_relative "../support/result"
require_relative "../support/rounds"
require_relative "../support/statistics"

module Benchmarks
  module Allocations
    # What `pitwall report --predict` says that removing a line would save, against what removing it saves. Eight programs, each with a line that
    # can be left out. In each round all are profiled, run with the line, and run without it, in random order; so the
    # prediction rests on as many runs as the measurement. In CPU time, so that a neighbour on the machine counts for less.
    class Prediction
      PROGRAMS = Dir[File.join(ROOT, "benchmarks/programs/predict/*.rb")].map { |path| File.basename(path, ".rb") }.sort.freeze
      ROUNDS = 7
      # Part of the saving that the interval may reach to either side.
      WIDTH = 0.3
      ENOUGH = 7
      KINDS = %i[kept removed profiled].freeze
      QUICK = { "PREDICT_WORK" => "0.02" }.freeze
      COMMAND = ["-I", File.join(ROOT, "lib"), "-r", File.join(ROOT, "script/checkout"),
                 "-e", "Checkout.use_vendored_gems; load File.join(Checkout::ROOT, 'exe/pitwall')", "--"].freeze
      private_constant :PROGRAMS, :ROUNDS, :WIDTH, :ENOUGH, :KINDS, :QUICK, :COMMAND

      # A program's figures in ns: what was said, what was measured with and without the line.
      Case = Struct.new(:name, :point, :low, :high, :own, :gc, :kept, :removed, :collections, keyword_init: true) do
        def saved = Statistics.median(kept) - Statistics.median(removed)
        def holds? = saved.between?(low, high)
        def width = (high - low) / 2 / point
      end

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        names = @context.chosen(PROGRAMS)
        return Result.new(tables: [], goals: goals(nil), notes: @context.notes, data: {}) if @context.available(%w[pitwall_signal]).empty? || names.empty?

        rounds = Rounds.take(@context, names.product(KINDS), @context.rounds(ROUNDS)) { |name, kind| kind == :profiled ? record(name, "profile") : run(name, removed: kind == :removed) }
        cases = names.map { |name| Case.new(name: name, **predict(name, rounds.map { |round| round.fetch([name, :profiled]) }), **measured(name, rounds)) }
        Result.new(tables: [table(cases)], goals: goals(cases), notes: @context.notes, data: cases.to_h { |one| [one.name, one.to_h] })
      end

      private

      def path(name) = File.join(ROOT, "benchmarks/programs/predict/#{name}.rb")

      # Times from plain profiles, places from a run in which every object was followed.
      def predict(name, profiles)
        sites = record(name, "allocations", "--stacks")
        figures(name, [*profiles, sites], profiles.size)
      ensure
        FileUtils.rm_f([*profiles, sites].compact)
      end

      def figures(name, files, recordings)
        $LOAD_PATH.unshift(File.join(ROOT, "lib")) unless $LOAD_PATH.include?(File.join(ROOT, "lib"))
        require "pitwall/record"
        require "pitwall/analyse"
        cost = Pitwall::Analyse::GCCost.new(files.flat_map { |file| Pitwall::Record.read(file).segments }, weight: :cpu)
        prediction = cost.predict("#{name}.rb:#{Removable.line(path(name))}")
        { point: prediction.saving.point, low: prediction.saving.low, high: prediction.saving.high, own: prediction.own.point, gc: prediction.gc.point }
          .transform_values { |ns| ns / recordings }
      end

      def record(name, *words)
        file = File.join(ROOT, "tmp", "benchmarks", "#{name}-#{@recorded = @recorded.to_i + 1}-#{Process.pid}.pit")
        FileUtils.mkdir_p(File.dirname(file))
        run(name, RbConfig.ruby, *COMMAND, *words, "--quiet", "--record", file, "--")
        file
      end

      def measured(name, rounds)
        kept, removed = %i[kept removed].map { |kind| rounds.map { |round| round.fetch([name, kind]) } }
        { kept: kept.map { |run| run["cpu_ns"] }, removed: removed.map { |run| run["cpu_ns"] }, collections: [kept, removed].map { |runs| runs.first["collections"] } }
      end

      def run(name, *prefix, removed: false)
        environment = { "PREDICT_REMOVED" => removed ? "1" : nil, **(@context.quick? ? QUICK : {}) }
        output, errors, status = Open3.capture3(environment, *prefix, RbConfig.ruby, path(name), chdir: ROOT)
        raise Context::Failure, "#{name}: #{errors}" unless status.success?

        JSON.parse(output.lines.last)
      end

      def table(cases)
        rows = cases.map do |one|
          [one.name, ms(one.own), ms(one.gc), "#{ms(one.point)} (#{ms(one.low)} … #{ms(one.high)})", format("±%.0f%%", one.width * 100), "#{ms(one.saved)} of #{ms(Statistics.median(one.kept))}",
           format("%+.0f%%", (one.saved / one.point - 1) * 100), one.holds? ? "yes" : "NO", one.collections.join(" → ")]
        end
        Table.new("What removing a line saves, CPU ms, predicted (95% interval) and measured (difference of medians)",
                  ["program", "own", "GC", "predicted", "width", "measured", "off by", "inside", "collections"], rows)
      end

      def ms(ns) = (ns / 1e6).round.to_s

      def goals(cases)
        texts = ["the interval contains the measured saving in at least #{ENOUGH} of #{PROGRAMS.size}", "no interval is wider than ±#{(WIDTH * 100).round}%"]
        return texts.map { |text| Goal.not_measured(text) } if cases.nil? || cases.size < PROGRAMS.size || @context.quick?

        inside = cases.count(&:holds?)
        widest = cases.map(&:width).max
        [Goal.new(texts[0], "#{inside} of #{cases.size}", inside >= ENOUGH), Goal.new(texts[1], format("±%.0f%%", widest * 100), widest <= WIDTH)]
      end
    end
  end
end
