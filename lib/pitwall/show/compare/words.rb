# frozen_string_literal: true

require "pitwall/analyse/statistics/sequential"
require "pitwall/show/measured/effect_words"
require "pitwall/show/compare/provenance"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # The results of `pitwall compare` in sentences, shared by text and Markdown.
    class CompareWords
      MIN_PAIRS = Analyse::Sequential::MIN_PAIRS
      private_constant :MIN_PAIRS

      # @param hints [Views::Hints] options that notes suggest
      #: (Analyse::ComparisonReport, hints: untyped) -> void
      def initialize(report, hints:)
        @report = report
        @hints = hints
      end

      # A sentence for each side: the verdict, or for several cases the number of cases with each verdict.
      # @return [Array<[String, String | nil, Symbol]>] the claim, its figures, its style
      #: () -> Array[[String, String?, Symbol]]
      def verdicts
        groups = @report.headline.group_by(&:side).values
        if groups.empty?
          return [["Nothing was compared#{": no metric #{@report.metric}" if @report.effects.any?}", nil, :yellow]]
        end

        groups.map do |effects|
          effects.size == 1 ? [*EffectWords.sentence(effects.first), EffectWords.style(effects.first)] : tally(effects)
        end
      end

      # A sentence for each undecided effect: the reason, and the number of pairs that would decide.
      #: () -> Array[String]
      def undecided
        @report.headline.select { |effect| EffectWords.verdict(effect) == :undecided }.map do |effect|
          text = subject_of(effect) + doubt(effect)
          @report.headline.size > 1 ? text : text.sub(/\A[a-z]/, &:upcase)
        end
      end

      # A sentence for each reason, with all cases that are undecided for that reason.
      #: () -> Array[String]
      def undecided_together
        undecided = @report.headline.select { |effect| EffectWords.verdict(effect) == :undecided }
        undecided.group_by { |effect| shared_doubt(effect) }.map do |reason, effects|
          "#{subjects(effects)}: undecided; #{reason || joint_doubt(effects)}"
        end
      end

      # How the gate judged: a sentence for each condition that held, or one for all that didn't.
      # @return [Array<[String, Symbol]>] sentences with their styles
      #: () -> Array[[String, Symbol]]
      def gate
        results = @report.gate.to_a
        held = results.reject { |result| result.found.empty? }
        return [] if results.empty?
        return [["The gate passes (#{results.map(&:condition).join(", ")})", :green]] if held.empty?

        held.map { |result| [gate_sentence(result), result.failed? ? :red : :green] }
      end

      # Changed metrics beside the headline, over all cases: "objects allocated fewer in 4 of 4 (×0.159 … −43.23%)".
      #: () -> Array[String]
      def changed
        decided = beside.first.select { |effect| decided?(effect) }
        words = decided.group_by(&:metric).map do |metric, effects|
          all = @report.effects.count { |effect| effect.metric == metric }
          verdicts = effects.group_by { |effect| EffectWords.verdict(effect) }.map do |verdict, group|
            "#{verdict} in #{group.size} of #{all}#{sizes(group)}"
          end
          "#{EffectWords.title(metric)} #{verdicts.join(", ")}"
        end
        words.empty? ? [] : ["beside it: #{words.join("; ")}"]
      end

      # Whether the effect is shown as a difference.
      #: (Analyse::Effect) -> bool
      def decided?(effect) = !%i[same undecided].include?(EffectWords.verdict(effect)) && !effect.below_margin

      # The measurement in a line: pairs, duration, smallest detectable effect, losses.
      #: () -> String
      def made_briefly
        duration = @report.duration_ns && Units.duration(@report.duration_ns)
        parts = [pairs_in_words, duration, power, *Provenance.losses(@report.losses), @hints.details]
        parts.compact.join(" · ")
      end

      # The result of the control, which compares the base with itself. A control should show no difference.
      # @return [Array<[String, Symbol]>] sentences with their styles
      #: () -> Array[[String, Symbol]]
      def control
        return [] unless @report.control

        effects = @report.control.select { |effect| effect.metric == @report.metric }
        return [["A/A control: nothing was measured", :yellow]] if effects.empty?

        wrong = effects.reject { |effect| %i[same undecided].include?(EffectWords.verdict(effect)) }
        shown = wrong.empty? ? effects.first(3) : wrong
        words = shown.map do |effect|
          "#{"#{effect.name}: " if effects.size > 1}#{EffectWords.measure(effect)}, #{EffectWords.short(effect)}"
        end
        words << "and #{effects.size - shown.size} more" if wrong.empty? && effects.size > shown.size
        if wrong.empty?
          return [["A/A control (#{effects.first.base} against itself): no false alarm; #{words.join("; ")}", :dim]]
        end

        alarm = "FALSE ALARM, so the verdicts above are not to be trusted here"
        [["A/A control (#{effects.first.base} against itself): #{alarm}; #{words.join("; ")}", :red]]
      end

      # The measurement with its settings: pairs, duration, smallest detectable effect, settings, losses.
      #: () -> String
      def made
        count = pairs_in_words&.concat(" in random order")
        duration = @report.duration_ns && "#{Units.duration(@report.duration_ns)}#{overrun}"
        settings = Provenance.settings(@report.settings&.reject { |name, _| name.to_s == "metric" })
        [count, duration, power, *settings, *Provenance.losses(@report.losses)].compact.join(" · ")
      end

      # Name of a side → the side's facts in words.
      #: () -> Hash[String, String]
      def sides
        facts = @report.sides.to_h do |side|
          words = side.facts.to_h.map { |name, value| name.to_s == "ruby" ? value.to_s : "#{name} #{value}" }
          [side.name, words.join(", ")]
        end
        facts.merge(not_counted)
      end

      # Counters of the VM's caches that a side's Ruby does not have: "not counted by main's Ruby" → their names.
      #: () -> Hash[String, String]
      def not_counted
        missing = @report.sides.to_h { |side| [side.name, @report.not_counted(side.name).join(", ")] }
        missing = { "this" => missing.values.first } if missing.size > 1 && missing.values.uniq.size == 1
        missing.reject { |_, names| names.empty? }
               .to_h { |side, names| ["not counted by #{side == "this" ? "this" : "#{side}'s"} Ruby", names] }
      end

      # Whether more than one side is compared with the base.
      #: () -> bool
      def several? = @report.effects.map(&:side).uniq.size > 1

      # An effect's case: "join". With several sides the side too: "join, your changes".
      #: (Analyse::Effect) -> String
      def subject(effect) = several? ? "#{effect.name}, #{effect.side}" : effect.name

      # Whether there is one case and one side.
      #: () -> bool
      def alone? = @report.headline.size == 1

      # The effects on metrics beside the headline, in three groups: effects with rows of their own, undecided effects,
      # and "same" effects. With a single case and side, an undecided effect that has an interval gets a row too.
      #: () -> [Array[Analyse::Effect], Array[Analyse::Effect], Array[Analyse::Effect]]
      def beside
        same, other = @report.other_effects.partition do |effect|
          EffectWords.verdict(effect) == :same && !effect.below_margin
        end
        undecided, shown = other.partition do |effect|
          EffectWords.verdict(effect) == :undecided &&
            !(alone? && Figures.sized?(effect.ratio) && !effect.ratio.exact?)
        end
        [shown, undecided, same]
      end

      # Unchanged metrics: "GC runs (exact); CPU time (within 1%, 2 of 3)".
      #: (Array[Analyse::Effect]) -> String
      def list(effects)
        partly(effects) do |group|
          group.all?(&:exact) ? "exact" : EffectWords.short(group.reject(&:exact).first).delete_prefix("same ")
        end
      end

      # Metrics, with the number of cases and sides where these are not all: "GC time; CPU time (2 of 3)".
      # @yield [Array<Effect>] returns a further text for a metric's effects
      #: (Array[Analyse::Effect]) ?{ (Array[Analyse::Effect]) -> String } -> String
      def partly(effects)
        effects.group_by(&:metric).map do |metric, group|
          all = @report.other_effects.count { |effect| effect.metric == metric }
          more = [*(yield group if block_given?), *("#{group.size} of #{all}" if group.size < all)]
          "#{EffectWords.title(metric)}#{" (#{more.join(", ")})" if more.any?}"
        end.join("; ")
      end

      private

      def gate_sentence(result)
        shown = result.failed? && result.again ? result.confirmed : result.found
        cases = "#{result.condition} holds for #{subjects(shown)}"
        return "The gate fails: #{cases}" unless result.again

        pairs = result.found.zip(result.again).select { |effect, _| shown.include?(effect) }
        again = pairs.map { |_, effect| effect ? EffectWords.measure(effect) : "not measured" }.first(3).join("; ")
        return "The gate fails: #{cases}, and a second run confirms it: #{again}" if result.failed?

        "The gate passes: #{cases}, but a second run does not confirm it: #{again}"
      end

      def pairs = @report.headline.map(&:pairs).compact.minmax.uniq

      # The number of pairs: "8 … 24 pairs of fresh processes".
      def pairs_in_words
        numbers = pairs.map { |number| Units.count(number) }.join(" … ")
        pairs.empty? ? nil : "#{numbers} #{pairs == [1] ? "pair" : "pairs"} of fresh processes"
      end

      # The range of effects: " (×0.159 … −43.23%)"; "" where no effect has a size.
      def sizes(effects)
        known = effects.select { |effect| Figures.sized?(effect.ratio) }.sort_by { |effect| effect.ratio.point }
        return "" if known.empty?

        " (#{[known.first, known.last].map { |effect| Figures.change(effect.ratio) }.uniq.join(" … ")})"
      end

      # Names the cases of several effects: "a, b, c and 4 more". Four cases are all named.
      def subjects(effects)
        Analyse::SomeNames.of(effects.map { |effect| subject(effect) }, effects.size > 4 ? 3 : 4)
      end

      # The reason for an undecided effect, other than noise, with advice; nil when the reason is noise.
      def shared_doubt(effect) = effect.reason && "#{effect.reason}#{advice(effect)}"

      # The noise of several effects, and the number of pairs that would decide all of them.
      def joint_doubt(effects)
        return doubt(effects.first) if effects.one?

        more = effects.map { |effect| @report.pairs_to_settle(effect) }
        return noise(effects) if more.any?(&:nil?)

        times = effects.zip(more).filter_map { |effect, pairs| @report.settling_ns(effect, pairs) }
        option = " (#{budget(times.max)})" if times.any?
        "#{noise(effects)}; up to #{Units.things(more.max, "more pair")}#{option} would settle them"
      end

      # The smallest effects that these pairs could detect with a power of 80%.
      def noise(effects)
        found = effects.filter_map(&:smallest_detectable)
        found.empty? ? "too little was measured" : "effects of #{range(found)} would have been found 4 times in 5"
      end

      def range(sizes) = sizes.minmax.map { |size| Figures.rough(size) }.uniq.join(" … ")

      # The reason for a duration longer than the budget; nil within the budget.
      def overrun
        budget = @report.settings.to_h["budget_s"]
        return unless budget && pairs == [MIN_PAIRS] && @report.case_ns.to_f > budget * 1.1e9

        " (the #{MIN_PAIRS} pairs that are needed take longer than the budget)"
      end

      # The smallest effect that the comparison detects with a power of 80%.
      def power
        found = @report.headline.filter_map(&:smallest_detectable)
        "an effect of #{range(found)} is found 4 times in 5" if found.any?
      end

      # The claim for several cases: the number of cases with each verdict.
      def tally(effects)
        side, base, margin = effects.first.to_h.values_at(:side, :base, :margin)
        small = Figures.share(margin || 0)
        counts = effects.map { |effect| kind(effect) }.tally
        words = { slower: ["slower than", "slower"], faster: ["faster than", "faster"],
                  more: ["above", "above"], fewer: ["below", "below"],
                  small: ["really different, but by less than #{small}, from",
                          "really different by less than #{small}"],
                  same: ["the same as", "the same"], undecided: ["undecided against", "undecided"] }
        parts = words.select { |verdict, _| counts[verdict] }.each_with_index.map do |(verdict, (long, short)), at|
          at.zero? ? "#{long} #{base} in #{share(counts[verdict], effects.size)}" : "#{short} in #{counts[verdict]}"
        end
        ["#{EffectWords.is(side)} #{parts.join(", ")} (#{EffectWords.title(@report.metric)})", nil, style(counts)]
      end

      # An effect's verdict; :small for a proven effect below the margin.
      def kind(effect)
        verdict = EffectWords.verdict(effect)
        effect.below_margin && verdict != :undecided ? :small : verdict
      end

      # A number of cases: "both cases", "all 4 cases" or "3 of 4 cases"
      def share(count, all)
        return "#{count} of #{all} cases" unless count == all

        all == 2 ? "both cases" : "all #{all} cases"
      end

      def style(counts)
        return :red if counts[:slower] || counts[:more]
        return :yellow if counts[:undecided]

        counts[:faster] || counts[:fewer] ? :green : :dim
      end

      def subject_of(effect) = @report.headline.size > 1 ? "#{subject(effect)}: undecided; " : ""

      # The reason for an undecided effect, and the number of pairs that would decide.
      def doubt(effect)
        return "#{effect.reason}#{advice(effect)}" if effect.reason

        smallest = effect.smallest_detectable
        seen = "too little was measured"
        seen = "an effect of #{Figures.rough(smallest)} would have been found 4 times in 5" if smallest
        more = @report.pairs_to_settle(effect)
        return seen unless more

        time = @report.settling_ns(effect, more)
        option = " (#{Units.duration(time)}: #{budget(time)})" if time
        "#{seen}; about #{Units.things(more, "more pair")}#{option} would settle it"
      end

      # The option that gives MIN_PAIRS pairs; nil when the pairs are not the reason.
      def advice(effect)
        return unless effect.pairs.to_i.between?(1, MIN_PAIRS - 1) && effect.reason.include?("needed") &&
                      @report.case_ns
        if @report.settings.to_h["max_blocks"].to_i.between?(1, MIN_PAIRS - 1)
          return "; #{@hints.pairs(MIN_PAIRS)} would do"
        end

        "; #{budget(@report.settling_ns(effect, MIN_PAIRS - effect.pairs))} would hold them"
      end

      # The option that sets the budget, in seconds, for a new run of the case with the further time, rounded up to 5 s.
      def budget(more_ns) = @hints.budget(((@report.case_ns + more_ns) / 5e9).ceil * 5)
    end
  end
end
