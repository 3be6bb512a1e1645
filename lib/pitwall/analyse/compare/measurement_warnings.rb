# frozen_string_literal: true

require "pitwall/analyse/compare/bench_summary"
require "pitwall/analyse/statistics/process_statistic"
require "pitwall/analyse/warning"

module Pitwall
  module Analyse
    # Reasons to doubt measurements of `bench` and `compare`, with what to try next, which depends on the options used.
    #
    # Kinds for the whole measurement: :host_busy.
    # Kinds for a case: :few_samples, :not_steady, :slow_first_run, :outlier, :gc_dominated, :clock_too_coarse,
    # :threads_left, :forked, :prints, :results_differ.
    module MeasurementWarnings
      FEWEST_PROCESSES = 5
      # Batches of warm-up to try next. Automatic detection gives up after 60.
      WARMUP = 200
      # Largest share of processes that report themselves as unsteady.
      UNSTEADY = 0.1
      # Smallest ratio of a slow first run to a later run.
      SLOW_FIRST = 10
      # Smallest difference of a slow first run to a later run.
      SLOW_FIRST_NS = 1_000_000
      # Smallest ratio of a slow first process to the others, for whole commands.
      SLOW_FIRST_COMMAND = 1.5
      # An outlier is a process beyond the far-out fences, and slower or faster than the median by at least this factor.
      FAR = 1.1
      # Garbage collection is reported above this share of the time.
      GC_SHARE = 0.2
      # Other programs' share of the machine's CPU time above which the host counts as busy.
      OTHERS = 0.1
      # The hypervisor's share of the machine's CPU time above which the host counts as busy.
      STEAL = 0.02
      # Involuntary context switches per second above which the host counts as busy.
      SWITCHES = 100
      SECOND = 1e9
      private_constant :FEWEST_PROCESSES, :WARMUP, :UNSTEADY, :SLOW_FIRST, :SLOW_FIRST_NS, :SLOW_FIRST_COMMAND, :FAR,
                       :GC_SHARE, :OTHERS, :STEAL, :SWITCHES, :SECOND

      # Notes that a process writes about itself: note → [kind, text, hint].
      NOTED = {
        coarse_clock: [:clock_too_coarse, "a batch is too short for the clock",
                       "do more in an iteration: time is counted in steps of the clock"],
        threads_left: [:threads_left,
                       "threads were left running; they take CPU time and the GVL from what is timed",
                       "join or stop them in the case"],
        forked: [:forked, "the case forked; what its children use is only in the wall time",
                 "wait for them in the case"],
        prints: [:prints, "the case prints; that is timed, too", "leave the printing out of the case"]
      }.freeze
      private_constant :NOTED

      module_function

      # Warnings, in the order of measurement.
      # @param samples of any number of cases and sides
      # @param host readings of Pitwall::Bench::Host#readings: "others" and "steal" (shares of all CPU time),
      #   "load_before"; and "cores"
      # @param settings as in Experiment::Settings#to_facts: "warmup", "budget_s", "pinned"…
      # @param advised [Boolean] whether the report already says how much longer to measure
      #: (
      #    Array[Record::Sample], ?host: Hash[String, untyped], ?settings: Hash[String, untyped], ?advised: bool
      #  ) -> Array[Warning]
      def of(samples, host: {}, settings: {}, advised: false)
        settings = settings.merge("advised" => advised)
        groups = samples.group_by { |sample| [sample.side.to_s, sample.name] }
        sides = groups.keys.map(&:first).uniq.size
        summaries = groups.to_h { |key, own| [key, BenchSummary.of(own).first] }
        sorted = groups.sort_by { |key, own| [own.map(&:block).min, own.map(&:order).min, key] }
        found = sorted.flat_map do |key, own|
          side, name = key
          warnings = of_case(summaries[key], BenchSummary.in_time(own), settings)
          warnings.each { |warning| warning.subject = sides > 1 ? "#{name}, #{side}" : name }
        end
        [busy(host, switches(summaries.values), settings), *found].compact
      end

      def of_case(summary, samples, settings)
        first = slow_first_run(summary)
        [few(summary, settings), not_steady(samples, settings), first, outlier(summary, first), gc(summary),
         *noted(samples), differ(samples)].compact
      end
      private_class_method :of_case

      def few(summary, settings)
        return if summary.processes >= FEWEST_PROCESSES

        processes = "#{summary.processes} #{summary.processes == 1 ? "process" : "processes"}"
        Warning.new(:few_samples, nil, "#{processes}: the interval says little", longer(settings))
      end
      private_class_method :few

      # Advice to measure longer; nil if the report gives it elsewhere.
      def longer(settings)
        return if settings["advised"]

        most, budget = settings["max_blocks"], settings["budget_s"]
        return "allow more than #{most}: --runs of bench, --pairs of compare" if most && most < 2 * FEWEST_PROCESSES

        budget ? "try --budget #{(2 * budget).ceil}" : "try a longer --budget"
      end
      private_class_method :longer

      def not_steady(samples, settings)
        text = unsteady(samples) || drift(samples)
        used = settings["warmup"]
        Warning.new(:not_steady, nil, text, "try --warmup #{used ? 4 * used : WARMUP}") if text
      end
      private_class_method :not_steady

      def unsteady(samples)
        count = count(samples, :unsteady)
        "#{count} of #{samples.size} processes were not steady when they were timed" if count > UNSTEADY * samples.size
      end
      private_class_method :unsteady

      def drift(samples)
        change = ProcessStatistic.drift(samples, level: BenchSummary::LEVEL, fewest: FEWEST_PROCESSES)
        return unless change

        direction = change.positive? ? "slower" : "faster"
        format("iterations got %.0f%% %s while they were timed", 100 * change.abs, direction)
      end
      private_class_method :drift

      def slow_first_run(summary)
        return slow_first_process(summary) if summary.command
        return unless summary.first_ratio.to_f >= SLOW_FIRST && summary.first_ns - summary.time.point >= SLOW_FIRST_NS

        Warning.new(:slow_first_run, nil, "the first run takes #{times(summary.first_ratio)} a later one",
                    "what it loads or fills then is not in the figures; " \
                    "`pitwall bench -- CMD` of a whole command has it")
      end
      private_class_method :slow_first_run

      def slow_first_process(summary)
        first, *others = summary.process_values
        return if others.size < 2

        ratio = first / Statistics.median(others)
        return unless ratio >= SLOW_FIRST_COMMAND && first > others.max

        Warning.new(:slow_first_run, nil, "the first process took #{times(ratio)} the others' median: caches were cold",
                    "run it again; they are warm now")
      end
      private_class_method :slow_first_process

      def outlier(summary, first)
        values = summary.process_values
        return if values.size < FEWEST_PROCESSES

        middle = Statistics.median(values)
        far = Statistics.far_out(values).select { |value| value > middle * FAR || value < middle / FAR }
        far.delete(values.first) if first && summary.command
        return if far.empty?

        worst = far.max_by { |value| Math.log(value / middle).abs }
        more = far.size > 1 ? ", and #{far.size - 1} more #{far.size == 2 ? "is" : "are"} far out" : ""
        many = far.size * 10 > values.size
        Warning.new(:outlier, nil, "process #{values.index(worst) + 1} took #{times(worst / middle)} the median#{more}",
                    many ? "something else runs now and then: close it" : "the median is not moved by it")
      end
      private_class_method :outlier

      def gc(summary)
        return unless summary.gc_share.to_f > GC_SHARE

        Warning.new(:gc_dominated, nil, "GC takes #{percent(summary.gc_share)} of the time",
                    "fewer objects make it faster: `pitwall profile`, then `report --gc apart`, " \
                    "shows where they come from")
      end
      private_class_method :gc

      def noted(samples)
        NOTED.filter_map do |note, (kind, text, hint)|
          count = count(samples, note)
          next if count.zero?

          Warning.new(kind, nil, count == samples.size ? text : "#{text} (#{count} of #{samples.size} processes)", hint)
        end
      end
      private_class_method :noted

      def differ(samples)
        results = samples.filter_map(&:digest).uniq.size
        return if results < 2

        Warning.new(:results_differ, nil, "it returned #{results} different results in #{samples.size} processes",
                    "give it the same work each time: seed what is random")
      end
      private_class_method :differ

      def count(samples, note) = samples.count { |sample| sample.notes.to_a.include?(note) }
      private_class_method :count

      # The highest rate of involuntary context switches of any case, per second.
      def switches(summaries)
        summaries.filter_map do |summary|
          number, time = summary.values["involuntary_switches"]&.estimate&.point, summary.time&.point
          number * SECOND / time if number && time&.positive?
        end.max
      end
      private_class_method :switches

      def busy(host, switches, settings)
        load, cores = host.values_at("load_before", "cores")
        signs = [("others used #{percent(host["others"])} of its CPU time" if host["others"].to_f > OTHERS),
                 ("the hypervisor took #{percent(host["steal"])}" if host["steal"].to_f > STEAL),
                 ("load #{format("%.1f", load)} on #{cores} cores before it began" if cores && load.to_f > cores),
                 ("a case lost the core #{switches.round} times a second" if switches.to_f > SWITCHES)].compact
        return if signs.empty?

        hint = "leave out --no-pin" if settings["pinned"] == false
        hint ||= ["close what else runs", longer(settings)].compact.join(", or ")
        Warning.new(:host_busy, nil, "the host was busy: #{signs.join(", ")}", hint)
      end
      private_class_method :busy

      def percent(share) = format(share < 0.1 ? "%.1f%%" : "%.0f%%", 100 * share)
      private_class_method :percent

      # Ratio as a text: "1.8x", "0.62x", "120x"
      def times(ratio) = ratio >= 10 ? "#{ratio.round}x" : "#{format(ratio < 1 ? "%.2f" : "%.1f", ratio)}x"
      private_class_method :times
    end
  end
end
