# frozen_string_literal: true

require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # What was measured, how, and how much of it to believe: the lines above every view.
    class HeaderView
      # The probes are timed before the first call is traced.
      START = "the first line's times include what Pitwall needed to start"
      MUCH_LATE = 0.1
      private_constant :START, :MUCH_LATE

      # For views of objects, which have no CPU time: "app.rb · ruby 4.0.5 · 2.10 s wall · 3 processes".
      #: (Analyse::Summary) -> String
      def self.of_objects(summary)
        return imported(summary).join(" · ") if summary.imports.any?

        [summary.programs.join(", "), summary.rubies.join(", "), "#{Units.duration(summary.elapsed_ns)} wall",
         ("#{summary.processes} processes" if summary.processes > 1)].compact.reject(&:empty?).join(" · ")
      end

      # The title of an imported profile, in parts. Other tools' files may lack everything but weights.
      #: (Analyse::Summary) -> Array[String]
      def self.imported(summary)
        files = summary.imports.group_by(&:first).map do |format, from|
          "#{format}, #{from.map(&:last).map { |name| Text.line(name) }.join(", ")}"
        end
        elapsed, cpu = summary.elapsed_ns, summary.stat("process_cpu_ns")
        ["imported from #{files.join(" and ")}", summary.programs.join(", "), summary.rubies.join(", "),
         ("#{Units.duration(elapsed)} wall" if elapsed.positive?), ("#{Units.duration(cpu)} CPU" if cpu.positive?),
         ("#{summary.processes} processes" if summary.processes > 1)].compact.reject(&:empty?)
      end

      # @param hints [Views::Hints] options that notes suggest
      #: (width: Integer, palette: untyped, hints: untyped) -> void
      def initialize(width:, palette:, hints:)
        @hints = hints
        @width = width
        @palette = palette
      end

      # @param summary [Analyse::Summary]
      # @param warnings [Array<String>] of the reader
      # @param difference [Object, nil] what a run without Pitwall gave: wall_ratio, cpu_ratio
      #: (Analyse::Summary, ?warnings: Array[String], ?difference: untyped) -> Array[String]
      def lines(summary, warnings: [], difference: nil)
        [*paragraph(title(summary)) { |line| @palette.bold(line) },
         *paragraph(summary.traced? ? tracing(summary) : sampling(summary)),
         *paragraph(native(summary)),
         *paragraph(perf(summary)),
         *paragraph(cost(summary, difference)),
         *warnings.flat_map { |text| note("!", text, :yellow) },
         *loss_notes(summary).flat_map { |text| note("!", text, :yellow) },
         *summary.notes.flat_map { |text| note("i", text, :dim) }]
      end

      private

      def title(summary)
        processes = summary.processes
        return self.class.imported(summary) if summary.imports.any?

        [Analyse::SomeNames.of(summary.programs, 3), Analyse::SomeNames.of(summary.rubies, 3),
         "#{Units.duration(summary.elapsed_ns)} wall", "#{Units.duration(summary.stat("process_cpu_ns"))} CPU",
         (processes > 1 ? "#{processes} processes" : nil)].compact.reject(&:empty?)
      end

      def sampling(summary)
        return [] if summary.modes == ["none"] || (summary.imports.any? && summary.stat("captures").zero?)

        interval = summary.intervals_ns.map { |ns| Units.interval(ns) }.join(", ")
        reasons = summary.signal_reasons
        mode = "#{summary.modes.join(", ")}#{" (#{reasons.join("; ")})" if reasons.any?}"
        how = [("every #{interval}" unless interval.empty?), ("mode #{mode}" unless mode.empty?)].compact.join(", ")
        ["#{Units.things(summary.stat("captures"), "sample")}#{" #{how}" unless how.empty?}",
         *("#{Units.count(summary.stat("dropped"))} dropped" if summary.imports.empty?), *late(summary),
         *refused(summary)]
      end

      # Stacks whose callers are not known up to the thread's start, and stacks in which Ruby and native frames were put
      # together without certainty.
      def native(summary)
        stacks = summary.stat("native_stacks")
        return [] if stacks.zero?

        lost, guessed = summary.stat("native_lost"), summary.stat("native_guessed")
        ["native frames in #{Units.things(stacks, "stack")}: " \
         "#{Units.percent(stacks - lost, stacks)} reach the thread's start",
         *("#{Units.count(guessed)} joined with Ruby's frames by guess" if guessed.positive?)]
      end

      # Samples of perf while the processes were recorded. Those without a place were taken before a thread's first row
      # or after its last.
      def perf(summary)
        samples, joined = summary.stat("perf_samples"), summary.stat("perf_joined")
        return [] if samples.zero?

        ["perf took #{Units.things(samples, "sample")}: #{Units.percent(joined, samples)} have their place here"]
      end

      def tracing(summary)
        return ["no call was traced"] if summary.calls.zero?

        ["#{Units.things(summary.calls, "call")} traced", probes(summary), *(START if summary.imports.empty?)].compact
      end

      # Self times are right to the error; what a method called adds up its own errors.
      def probes(summary)
        kinds = summary.probes.map do |kind, (inside, outside, error)|
          "#{kind} #{(inside.to_f + outside.to_f).round} ±#{error.to_f.ceil}"
        end
        return if kinds.empty?

        "probes #{Units.duration(summary.probe_ns)}, taken off (ns a call: #{kinds.join(", ")})"
      end

      # Nothing of these is lost but the moment at which they were to be taken.
      def late(summary)
        late = [[summary.stat("missed_ticks"), "came late"], [summary.stat("deferred_ticks"), "were put off"]]
        late = late.select { |count, _| count.positive? }
        return [] if late.empty?

        said = late.each_with_index.map do |(count, what), at|
          ticks = at.zero? ? Units.things(count, "tick") : Units.count(count)
          "#{ticks} #{count == 1 ? what.sub("were", "was") : what}"
        end
        ["#{said.join(" and ")} (their time is in the next sample)"]
      end

      def refused(summary)
        refused = summary.stat("refused_frames")
        refused.positive? ? ["#{Units.things(refused, "frame")} refused"] : []
      end

      def cost(summary, difference)
        return [] if summary.own_ns.zero? && difference.nil?

        share = summary.own_share
        own = "own cost #{Units.duration(summary.own_ns)}#{format(" (%.1f%% of the CPU time)", share * 100) if share}"
        [own, difference && compared(difference)].compact
      end

      def compared(difference)
        ratios = [["wall", difference.wall_ratio], ["CPU", difference.cpu_ratio]].select(&:last)
        "against one run without Pitwall: #{ratios.map { |name, ratio| format("%s ×%.3f", name, ratio) }.join(", ")}"
      end

      # Losses that change how the report is to be read.
      def loss_notes(summary)
        [dropped(summary), truncated(summary), late_reader(summary), untold_collections(summary), lost_signal(summary),
         lost_calls(summary)].flatten.compact
      end

      def dropped(summary)
        samples = summary.stat("captures")
        dropped = summary.stat("dropped")
        return unless dropped * 100 > samples

        "#{Units.percent(dropped, samples + dropped)} of the samples were dropped: #{@hints.interval}"
      end

      def truncated(summary)
        deep, refused = summary.stat("truncated"), summary.stat("timers_refused")
        [("#{Units.count(deep)} stacks were deeper than the limit and lost their callers" if deep.positive?),
         ("#{Units.count(refused)} threads got no timer and are seen less often" if refused.positive?)]
      end

      def late_reader(summary)
        late = summary.reader_late_share
        return unless late && late > MUCH_LATE

        "the reader came late to #{(late * 100).round}% of its ticks, as other programs wanted its core: " \
          "#{@hints.on_time}"
      end

      def untold_collections(summary)
        untold = summary.stat("gc_untold")
        return unless untold.positive?

        "Ruby did not tell of #{Units.things(untold, "collection")}, of other Ractors or where one had ended: " \
          "their time is the program's own here"
      end

      def lost_signal(summary)
        "another handler took the sampling signal: #{@hints.other_signal}" if summary.stat("signal_lost").positive?
      end

      def lost_calls(summary)
        return unless summary.lost_calls.positive?

        "#{Units.count(summary.lost_calls)} calls found no room in the call tree: they count nowhere, " \
          "and their time is their callers' (#{@hints.fewer_calls})"
      end

      # Items in as few lines as they fit.
      def paragraph(items)
        lines = []
        items.each do |item|
          if lines.any? && Text.width(lines.last) + 3 + Text.width(Text.safe(item)) <= @width
            lines[-1] = "#{lines.last} · #{Text.safe(item)}"
          else
            lines << Text.safe(item)
          end
        end
        lines.flat_map { |line| Text.wrap(line, @width) }.map { |line| block_given? ? yield(line) : line }
      end

      def note(mark, text, style)
        Text.wrap("#{mark} #{text}", @width).map { |line| @palette.public_send(style, line) }
      end
    end
  end
end
