# frozen_string_literal: true

# A replacement for benchmark-ips, for benchmark files that are run by plain `ruby`:
#
#   require "pitwall/ips"                       # instead of "benchmark/ips"
#   report = Benchmark.ips do |x|
#     x.report("join") { words.join }
#     x.report("inject") { words.inject(:+) }
#     x.compare!
#   end
#   report.entries.each { |entry| puts entry.label, entry.ips, entry.ns, entry.spread, entry.objects }
#
# It also defines `Pitwall.bench` (parameters, setup, state for each iteration). All cases are measured in this one
# process, in rounds. A round runs every case for a short time, in random order, so that a disturbance of the machine
# affects all cases alike. It gives no verdict (CAVEAT says why). `pitwall bench` measures the same file in fresh
# processes; this file then does nothing.
unless defined?(Pitwall::Bench) && Pitwall::Bench.runner
  require_relative "../errors" unless defined?(Pitwall::Error)
  # Code that has loaded benchmark-ips relies on its methods: Pitwall must not replace them.
  if defined?(Benchmark::IPS::VERSION)
    raise Pitwall::StateError, "benchmark-ips #{Benchmark::IPS::VERSION} is already loaded: " \
                               "require \"pitwall/ips\" instead of it"
  end

  unless File.file?(File.expand_path("../bench_child/assembled.rb", __dir__))
    raise Pitwall::CannotMeasure, "lib/pitwall/bench_child/assembled.rb is missing: run script/setup in the checkout"
  end

  require_relative "../bench_child/assembled"
  $LOADED_FEATURES << +"benchmark/ips.rb"

  module Pitwall
    # Measures the cases of a block in this process and prints a table.
    # @api private
    module InProcess
      TIME_S = 5
      WARMUP_S = 2
      # The time of a case in one round.
      MAX_TURN_NS = 100_000_000
      MIN_TURN_NS = 1_000_000
      # Rounds in the measuring time, within those limits.
      ROUNDS = 20
      CAVEAT = "One process can't tell small differences: 94–100%% of the variance lies between processes. " \
               "`pitwall bench %s` measures in many."

      # A case and its measurements.
      #
      # label:   "join"
      # work:    Pitwall::Bench::Work
      # meter:   Pitwall::Bench::Meter
      # batch:   iterations in a round
      # wall:    wall time of each round, ns
      # objects: objects allocated in each round
      Runner = Struct.new(:label, :work, :meter, :batch, :wall, :objects) do
        def turn
          wall << meter.take(0, work, batch)
          objects << meter.objects.first
        end

        def entry
          each = wall.map { |ns| [ns, 1].max.to_f / batch }.sort
          ns = each[each.size / 2]
          spread = (each[each.size * 3 / 4] - each[each.size / 4]) / 2 / ns
          Pitwall::Bench::Entry.new(label, 1e9 / ns, ns, spread, objects.sum.to_f / (batch * objects.size),
                                    batch * wall.size, wall.size)
        end
      end
      private_constant :Runner

      class << self
        def selected?(_block) = true

        #: (Pitwall::Bench::Job) -> Pitwall::Bench::Report
        def run(job)
          job.ignored.each { |call| once("#{call} has no effect here") { |text| warn "pitwall: #{text}" } }
          runners = job.cases.map do |kase|
            Runner.new(kase.label, Pitwall::Bench::Work.new(kase), Pitwall::Bench::Meter.new(1), 1, [], [])
          end
          measure(runners, nanoseconds(job, :time, TIME_S), nanoseconds(job, :warmup, WARMUP_S))
          report = Pitwall::Bench::Report.new(runners.map(&:entry), job.compare?)
          show(report, job) unless job.quiet
          report
        ensure
          runners&.each { |runner| runner.work.finish }
        end

        private

        # A setting in seconds as nanoseconds.
        def nanoseconds(job, name, default)
          value = job.settings[name] || default
          return value * 1_000_000_000 if value.is_a?(Numeric) && value.between?(0, 86_400)

          raise UsageError, "#{job.call}: x.#{name} = #{value.inspect}: seconds, 0 to 86400"
        end

        def measure(runners, time_ns, warmup_ns)
          turn_ns = (time_ns / ROUNDS).clamp(MIN_TURN_NS, MAX_TURN_NS)
          runners.each { |runner| start(runner, turn_ns) }
          rounds(runners, warmup_ns) if warmup_ns.positive?
          runners.each do |runner|
            find_batch(runner, turn_ns, runner.batch) if runner.wall.any?
            runner.wall.clear
            runner.objects.clear
          end
          GC.start
          rounds(runners, time_ns)
        end

        def start(runner, turn_ns)
          runner.work.prepare(1)
          runner.work.once
          runner.work.release
          runner.work.prime
          find_batch(runner, turn_ns, 1)
        end

        def find_batch(runner, turn_ns, first)
          runner.batch = Pitwall::Bench::Calibration.batch(runner.work, runner.meter, turn_ns, first).first
        end

        # Runs rounds until each case has run for the given time.
        def rounds(runners, time_ns)
          left = runners
          until left.empty?
            left.shuffle.each(&:turn)
            left = left.reject { |runner| runner.wall.sum >= time_ns }
          end
        end

        def show(report, job)
          entries = report.entries
          return if entries.empty?

          width = entries.map { |entry| entry.label.size }.max.clamp(10, 60)
          puts RUBY_DESCRIPTION, *(job.name unless job.name.empty?)
          puts "#{" " * width}  iterations/s  time/iteration   spread  objects/iteration"
          entries.each { |entry| puts row(entry, width) }
          compare(entries, job.order, width) if report.compare && entries.size > 1
          puts
        end

        def row(entry, width)
          spread = entry.rounds < 4 ? "–" : format("±%.1f%%", entry.error_percentage)
          format("%s  %12s  %14s  %7s  %17.2f", entry.label.ljust(width), count(entry.ips), time(entry.ns), spread,
                 entry.objects)
        end

        def compare(entries, order, width)
          first = order == :baseline ? entries.first : entries.max_by(&:ips)
          rest = (entries - [first]).sort_by { |entry| -entry.ips }
          puts "", "Time an iteration, compared with #{first.label}:"
          [first, *rest].each { |entry| puts format("%s  %8.2f ×", entry.label.ljust(width), entry.ns / first.ns) }
          once(format(CAVEAT, File.basename($0))) { |text| puts text }
        end

        # Yields a text the first time in this process.
        def once(text)
          @printed ||= {}
          yield text unless @printed[text]
          @printed[text] = true
        end

        def count(value)
          unit, factor = [["G", 1e9], ["M", 1e6], ["k", 1e3]].find { |_, each| value >= each } || ["", 1.0]
          "#{digits(value / factor)}#{" #{unit}".rstrip}"
        end

        def time(ns)
          unit, factor = [["s", 1e9], ["ms", 1e6], ["µs", 1e3]].find { |_, each| ns >= each } || ["ns", 1.0]
          "#{digits(ns / factor)} #{unit}"
        end

        # A number with four significant digits.
        def digits(value)
          format("%.#{(3 - Math.log10([value, 0.001].max).floor).clamp(0, 3)}f", value)
        end
      end
    end

    Pitwall::Bench.runner = InProcess
  end
end
