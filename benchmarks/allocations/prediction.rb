# frozen_string_literal: true

require "fileutils"
require_relative "../support/removable"
require_relative "../support/result"
require_relative "../support/rounds"
require_relative "../support/statistics"

module Benchmarks
  module Allocations
    # Compares what `pitwall report --predict` says that removing a line would save with what removing the line saves.
    # Eight programs were known when the model was made, four were not. Each program has a line that can be left out.
    # In each round each program is profiled, run with the line, and run without the line, one right after the other
    # in random order. So changes of the machine's speed meet all three, and the prediction rests on as many runs as
    # the measurement. The figures are CPU time, so that a neighbour on the machine counts for less. The machine's
    # speed still changes between two runs by a third, and a profile's prediction is of a run at the profile's speed.
    # So the prediction is scaled to the speed of the runs with the line, by what the program itself took in both.
    class Prediction
      FOLDERS = %w[predict predict_held_out].freeze
      PATHS = FOLDERS.to_h do |folder|
        files = Dir[File.join(ROOT, "benchmarks/programs", folder, "*.rb")].sort
        [folder, files.to_h { |path| [File.basename(path, ".rb"), path] }]
      end.freeze
      PROGRAMS, HELD_OUT = PATHS.values.map(&:keys)
      ROUNDS = 7
      # Part of the saving that the interval may reach to either side.
      WIDTH = 0.3
      ENOUGH = 7
      KINDS = %i[kept removed profiled].freeze
      # Of what the programs do by themselves: more and shorter rounds say more on a machine whose speed changes.
      WORK = 0.5
      QUICK = 0.02
      COMMAND = ["-I", File.join(ROOT, "lib"), "-r", File.join(ROOT, "script/checkout"),
                 "-e", "Checkout.use_vendored_gems; load File.join(Checkout::ROOT, 'exe/pitwall')", "--"].freeze
      private_constant :FOLDERS, :PATHS, :PROGRAMS, :HELD_OUT, :ROUNDS, :WIDTH, :ENOUGH, :KINDS, :WORK, :QUICK, :COMMAND

      # A program's figures in ns: what was said; what runs with the line took, without it, and under the profiler.
      # gc_spent: in collection, with the line and without, as Ruby counts it.
      Case = Struct.new(:name, :point, :low, :high, :own, :gc, :kept, :removed, :profiled, :gc_spent, :collections,
                        keyword_init: true) do
        def saved = mean_difference(kept, removed)
        def gc_saved = mean_difference(*gc_spent)
        def holds? = saved.between?(low, high)
        def width = (high - low) / 2 / point
        # What the profiler added, as far as it can be told from so few runs.
        def cost = profiled.sum.fdiv(kept.sum)

        private

        def mean_difference(with, without) = Statistics.mean(with) - Statistics.mean(without)
      end

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        names = @context.chosen(PROGRAMS + HELD_OUT)
        if @context.available(%w[pitwall_signal]).empty? || names.empty?
          return Result.new(tables: [], goals: goals(nil), notes: @context.notes, data: {})
        end

        order = Random.new(1)
        rounds = Rounds.take(@context, names, @context.rounds(ROUNDS)) do |name|
          KINDS.shuffle(random: order).to_h { |kind| [kind, once(name, kind)] }
        end
        cases = names.map { |name| figures(name, rounds.map { |round| round.fetch(name) }) }
        parts = [PROGRAMS, HELD_OUT].map { |part| cases.select { |one| part.include?(one.name) } }
        tables = parts.zip(["", ", programs that the model had not seen"])
        tables = tables.reject { |part, _| part.empty? }.map { |part, title| table(part, title) }
        Result.new(tables: tables, goals: goals(cases), notes: @context.notes,
                   data: cases.to_h { |one| [one.name, one.to_h] })
      end

      private

      def path(name) = PATHS.values.filter_map { |paths| paths[name] }.first

      # @return [Hash, Array] what the program said; under the profiler also the recording
      def once(name, kind)
        return run(name, removed: kind == :removed) unless kind == :profiled

        record(name, "profile")
      end

      # Times from plain profiles, places from a run in which every object was followed.
      def figures(name, rounds)
        profiles = rounds.map { |round| round[:profiled].last }
        sites = record(name, "allocations", "--stacks").last
        spent = { kept: rounds.map { |round| round[:kept] }, removed: rounds.map { |round| round[:removed] },
                  profiled: rounds.map { |round| round[:profiled].first } }
        faster = spent[:kept].sum { |run| run["cpu_ns"] }.fdiv(spent[:profiled].sum { |run| run["cpu_ns"] })
        predicted = predict(name, [*profiles, sites], profiles.size).transform_values { |ns| ns * faster }
        Case.new(name: name, **predicted,
                 **spent.transform_values { |runs| runs.map { |run| run["cpu_ns"] } },
                 gc_spent: %i[kept removed].map { |kind| spent[kind].map { |run| run["gc_ns"] } },
                 collections: %i[kept removed].map { |kind| spent[kind].first["collections"] })
      ensure
        FileUtils.rm_f([*profiles, sites].compact)
      end

      def predict(name, files, recordings)
        $LOAD_PATH.unshift(File.join(ROOT, "lib")) unless $LOAD_PATH.include?(File.join(ROOT, "lib"))
        require "pitwall/record"
        require "pitwall/analyse"
        cost = Pitwall::Analyse::GCCost.new(files.flat_map { |file| Pitwall::Record.read(file).segments }, weight: :cpu)
        prediction = cost.predict("#{name}.rb:#{Removable.line(path(name))}")
        saving = prediction.saving
        { point: saving.point, low: saving.low, high: saving.high, own: prediction.own.point, gc: prediction.gc.point }
          .transform_values { |ns| ns / recordings }
      end

      def record(name, *words)
        file = File.join(ROOT, "tmp", "benchmarks", "#{name}-#{@recorded = @recorded.to_i + 1}-#{Process.pid}.pit")
        FileUtils.mkdir_p(File.dirname(file))
        [run(name, RbConfig.ruby, *COMMAND, *words, "--quiet", "--record", file, "--"), file]
      end

      def run(name, *prefix, removed: false)
        work = @context.quick? ? QUICK : WORK
        environment = { "PREDICT_REMOVED" => removed ? "1" : nil, "PREDICT_WORK" => work.to_s }
        output, errors, status = Open3.capture3(environment, *prefix, RbConfig.ruby, path(name), chdir: ROOT)
        raise Context::Failure, "#{name}: #{errors}" unless status.success?

        JSON.parse(output.lines.last)
      end

      def table(cases, title)
        rows = cases.map do |one|
          [one.name, ms(one.own), ms(one.gc), "#{ms(one.point)} (#{ms(one.low)} … #{ms(one.high)})",
           format("±%.0f%%", one.width * 100), "#{ms(one.saved)} of #{ms(Statistics.mean(one.kept))}", ms(one.gc_saved),
           format("%+.0f%%", (one.saved / one.point - 1) * 100), format("×%.2f", one.cost), one.holds? ? "yes" : "NO",
           one.collections.join(" → ")]
        end
        title = "What removing a line saves, CPU ms, predicted (95% interval) and measured " \
                "(means of #{cases.first.kept.size} runs)#{title}"
        Table.new(title, ["program", "own", "GC", "predicted", "width", "measured", "of it GC", "off by",
                          "under the profiler", "inside", "collections"], rows)
      end

      def ms(ns) = (ns / 1e6).round.to_s

      def goals(cases)
        texts = ["the interval contains the measured saving in at least #{ENOUGH} of #{PROGRAMS.size}",
                 "in at least #{HELD_OUT.size - 1} of the #{HELD_OUT.size} held out",
                 "no interval is wider than ±#{(WIDTH * 100).round}%"]
        complete = cases && cases.size >= (PROGRAMS + HELD_OUT).size
        return texts.map { |text| Goal.not_measured(text) } if !complete || @context.quick?

        known, held_out = cases.partition { |one| PROGRAMS.include?(one.name) }
        widest = known.map(&:width).max
        known_held, new_held = [known, held_out].map { |part| part.count(&:holds?) }
        [Goal.new(texts[0], "#{known_held} of #{known.size}", known_held >= ENOUGH),
         Goal.new(texts[1], "#{new_held} of #{held_out.size}", new_held >= HELD_OUT.size - 1),
         Goal.new(texts[2], format("±%.0f%%", widest * 100), widest <= WIDTH)]
      end
    end
  end
end
