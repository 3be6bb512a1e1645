# frozen_string_literal: true

require "pitwall/analyse/statistics/sequential"
require "pitwall/show/compare/effect_words"
require "pitwall/show/compare/provenance"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # What `pitwall compare` found, in sentences that text and Markdown share.
    class CompareWords
      FEWEST = Analyse::Sequential::MIN_PAIRS
      private_constant :FEWEST

      #: (Analyse::ComparisonReport) -> void
      def initialize(report)
        @report = report
      end

      # One sentence a side: its verdict, or how many cases had which.
      # @return [Array<[String, String | nil, Symbol]>] what is claimed, its figures, its style
      #: () -> Array[[String, String?, Symbol]]
      def verdicts
        groups = @report.headline.group_by(&:side).values
        return [["Nothing was compared#{": no metric #{@report.metric}" if @report.effects.any?}", nil, :yellow]] if groups.empty?

        groups.map do |effects|
          effects.size == 1 ? [*EffectWords.sentence(effects.first), EffectWords.style(effects.first)] : tally(effects)
        end
      end

      # Below the verdicts: what was undecided, why, and what would settle it.
      #: () -> Array[String]
      def undecided
        @report.headline.select { |effect| EffectWords.verdict(effect) == :undecided }.map do |effect|
          text = of(effect) + doubt(effect)
          @report.headline.size > 1 ? text : text.sub(/\A[a-z]/, &:upcase)
        end
      end

      # The same of several cases: those that are undecided for one reason in one sentence.
      #: () -> Array[String]
      def undecided_together
        undecided = @report.headline.select { |effect| EffectWords.verdict(effect) == :undecided }
        undecided.group_by { |effect| shared_doubt(effect) }.map do |reason, effects|
          "#{subjects(effects)}: undecided; #{reason || settled(effects)}"
        end
      end

      # Metrics beside the headline that changed, over all cases: "objects allocated: fewer in 4 of 4 (×0.159 … −43.23%)".
      #: () -> Array[String]
      def changed
        told = beside.first.select { |effect| decided?(effect) }
        words = told.group_by(&:metric).map do |metric, effects|
          all = @report.effects.count { |effect| effect.metric == metric }
          verdicts = effects.group_by { |effect| EffectWords.verdict(effect) }.map { |verdict, group| "#{verdict} in #{group.size} of #{all}#{sizes(group)}" }
          "#{EffectWords.title(metric)} #{verdicts.join(", ")}"
        end
        words.empty? ? [] : ["beside it: #{words.join("; ")}"]
      end

      # Whether a difference is claimed.
      #: (Analyse::Effect) -> bool
      def decided?(effect) = !%i[same undecided].include?(EffectWords.verdict(effect)) && !effect.below_margin

      # How it was made, in a line.
      #: () -> String
      def made_briefly = [pairs_in_words, @report.duration_ns && Units.duration(@report.duration_ns), power, *Provenance.losses(@report.losses), "--details shows the rest"].compact.join(" · ")

      # The control: the base against itself, which ought to show nothing.
      # @return [Array<[String, Symbol]>]
      #: () -> Array[[String, Symbol]]
      def control
        return [] unless @report.control

        effects = @report.control.select { |effect| effect.metric == @report.metric }
        return [["A/A control: nothing was measured", :yellow]] if effects.empty?

        wrong = effects.reject { |effect| %i[same undecided].include?(EffectWords.verdict(effect)) }
        shown = wrong.empty? ? effects.first(3) : wrong
        words = shown.map { |effect| "#{"#{effect.name}: " if effects.size > 1}#{EffectWords.measure(effect)}, #{EffectWords.short(effect)}" }
        words << "and #{effects.size - shown.size} more" if wrong.empty? && effects.size > shown.size
        return [["A/A control (#{effects.first.base} against itself): no false alarm; #{words.join("; ")}", :dim]] if wrong.empty?

        alarm = "FALSE ALARM, so the verdicts above are not to be trusted here"
        [["A/A control (#{effects.first.base} against itself): #{alarm}; #{words.join("; ")}", :red]]
      end

      # How it was made.
      #: () -> String
      def made
        count = pairs_in_words&.concat(" in random order")
        settings = Provenance.settings(@report.settings&.reject { |name, _| name.to_s == "metric" })
        [count, @report.duration_ns && "#{Units.duration(@report.duration_ns)}#{stretched}", power, *settings, *Provenance.losses(@report.losses)].compact.join(" · ")
      end

      # Side → what is known of it.
      #: () -> Hash[String, String]
      def sides
        @report.sides.to_h do |side|
          [side.name, side.facts.to_h.map { |name, value| name.to_s == "ruby" ? value.to_s : "#{name} #{value}" }.join(", ")]
        end
      end

      # Whether more than one side is held against the base.
      #: () -> bool
      def several? = @report.effects.map(&:side).uniq.size > 1

      # "join", or "join, your changes" where there are several sides.
      #: (Analyse::Effect) -> String
      def subject(effect) = several? ? "#{effect.name}, #{effect.side}" : effect.name

      # Whether there is one case and one side.
      #: () -> bool
      def alone? = @report.headline.size == 1

      # Metrics beside the headline. What is the same needs no row of its own; nor does what is undecided, unless it is all there is to see.
      # @return [Array(Array<Effect>, Array<Effect>, Array<Effect>)] those to show, those that are undecided, those that are the same
      #: () -> [Array[Analyse::Effect], Array[Analyse::Effect], Array[Analyse::Effect]]
      def beside
        same, other = @report.beside.partition { |effect| EffectWords.verdict(effect) == :same && !effect.below_margin }
        undecided, told = other.partition { |effect| EffectWords.verdict(effect) == :undecided && !(alone? && Figures.sized?(effect.ratio) && !effect.ratio.exact?) }
        [told, undecided, same]
      end

      # "GC runs (exact); CPU time (within 1%, 2 of 3)"
      #: (Array[Analyse::Effect]) -> String
      def list(effects)
        partly(effects) do |group|
          group.all?(&:exact) ? "exact" : EffectWords.short(group.reject(&:exact).first).delete_prefix("same ")
        end
      end

      # "GC time; CPU time (2 of 3)": metrics, and in how many cases and sides where not in all; the block may say more of them.
      #: (Array[Analyse::Effect]) ?{ (Array[Analyse::Effect]) -> String } -> String
      def partly(effects)
        effects.group_by(&:metric).map do |metric, group|
          all = @report.beside.count { |effect| effect.metric == metric }
          more = [*(yield group if block_given?), *("#{group.size} of #{all}" if group.size < all)]
          "#{EffectWords.title(metric)}#{" (#{more.join(", ")})" if more.any?}"
        end.join("; ")
      end

      private

      def pairs = @report.headline.map(&:pairs).compact.minmax.uniq

      # "8 … 24 pairs of fresh processes"
      def pairs_in_words
        numbers = pairs.map { |number| Units.count(number) }.join(" … ")
        pairs.empty? ? nil : "#{numbers} #{pairs == [1] ? "pair" : "pairs"} of fresh processes"
      end

      # " (×0.159 … −43.23%)"; nothing where none has a size.
      def sizes(effects)
        known = effects.select { |effect| Figures.sized?(effect.ratio) }.sort_by { |effect| effect.ratio.point }
        known.empty? ? "" : " (#{[known.first, known.last].map { |effect| Figures.change(effect.ratio) }.uniq.join(" … ")})"
      end

      # "a, b, c and 4 more"
      def subjects(effects)
        names = effects.map { |effect| subject(effect) }
        names.size > 4 ? "#{names.first(3).join(", ")} and #{names.size - 3} more" : names.join(", ")
      end

      # Why it is undecided, where that is more than noise.
      def shared_doubt(effect) = effect.reason && "#{effect.reason}#{advice(effect)}"

      # What would settle all of them.
      def settled(effects)
        return effects.one? ? doubt(effects.first) : noise(effects) if effects.one? || effects.any? { |effect| @report.pairs_to_settle(effect).nil? }

        more = effects.map { |effect| @report.pairs_to_settle(effect) }
        times = effects.zip(more).filter_map { |effect, pairs| @report.settling_ns(effect, pairs) }
        "#{noise(effects)}; up to #{Units.things(more.max, "more pair")}#{" (--budget #{budget(times.max)})" if times.any?} would settle them"
      end

      def noise(effects)
        found = effects.filter_map(&:smallest_detectable)
        found.empty? ? "too little was measured" : "effects of #{found.minmax.map { |size| Figures.rough(size) }.uniq.join(" … ")} would have been found 4 times in 5"
      end

      # Why it took longer than its budget.
      def stretched
        budget = @report.settings.to_h["budget_s"]
        " (the #{FEWEST} pairs that are needed take longer than the budget)" if budget && pairs == [FEWEST] && @report.case_ns.to_f > budget * 1.1e9
      end

      # What these pairs could have shown.
      def power
        found = @report.headline.filter_map(&:smallest_detectable)
        found.empty? ? nil : "an effect of #{found.minmax.map { |size| Figures.rough(size) }.uniq.join(" … ")} is found 4 times in 5"
      end

      def tally(effects)
        side, base, margin = effects.first.to_h.values_at(:side, :base, :margin)
        small = Figures.share(margin || 0)
        counts = effects.map { |effect| kind(effect) }.tally
        words = { slower: ["slower than", "slower"], faster: ["faster than", "faster"], more: ["above", "above"], fewer: ["below", "below"],
                  small: ["really different, but by less than #{small}, from", "really different by less than #{small}"],
                  same: ["the same as", "the same"], undecided: ["undecided against", "undecided"] }
        parts = words.select { |verdict, _| counts[verdict] }.each_with_index.map do |(verdict, (long, short)), at|
          at.zero? ? "#{long} #{base} in #{share(counts[verdict], effects.size)}" : "#{short} in #{counts[verdict]}"
        end
        ["#{EffectWords.is(side)} #{parts.join(", ")} (#{EffectWords.title(@report.metric)})", nil, tone(counts)]
      end

      # A verdict, with what is real but small apart.
      def kind(effect)
        verdict = EffectWords.verdict(effect)
        effect.below_margin && verdict != :undecided ? :small : verdict
      end

      def share(count, all) = count == all ? { 2 => "both cases" }.fetch(all, "all #{all} cases") : "#{count} of #{all} cases"

      def tone(counts)
        return :red if counts[:slower] || counts[:more]
        return :yellow if counts[:undecided]

        counts[:faster] || counts[:fewer] ? :green : :dim
      end

      def of(effect) = @report.headline.size > 1 ? "#{subject(effect)}: undecided; " : ""

      def doubt(effect)
        return "#{effect.reason}#{advice(effect)}" if effect.reason

        smallest = effect.smallest_detectable
        seen = smallest ? "an effect of #{Figures.rough(smallest)} would have been found 4 times in 5" : "too little was measured"
        more = @report.pairs_to_settle(effect)
        return seen unless more

        time = @report.settling_ns(effect, more)
        "#{seen}; about #{Units.things(more, "more pair")}#{" (#{Units.duration(time)}: --budget #{budget(time)})" if time} would settle it"
      end

      # What would give the pairs that nothing can be said without.
      def advice(effect)
        return unless effect.pairs.to_i.between?(1, FEWEST - 1) && effect.reason.include?("needed") && @report.case_ns
        return "; --pairs #{FEWEST} would do" if @report.settings.to_h["max_blocks"].to_i.between?(1, FEWEST - 1)

        "; --budget #{budget(@report.settling_ns(effect, FEWEST - effect.pairs))} would hold them"
      end

      # Of a whole new run of the case, rounded up to five seconds.
      def budget(more_ns) = ((@report.case_ns + more_ns) / 5e9).ceil * 5
    end
  end
end
