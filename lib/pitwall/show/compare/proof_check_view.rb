# frozen_string_literal: true

require "json"
require "pitwall/show/compare/json"
require "pitwall/show/compare/proof_trailers"
require "pitwall/show/measured/effect_words"
require "pitwall/show/terminal/text"

module Pitwall
  module Show
    # What became of a proof that was measured again.
    class ProofCheckView
      SCHEMA = "pitwall/prove-check-1"
      WORDS = { holds: "The proof of %s holds", fails: "The proof of %s does not hold",
                undecided: "Undecided whether the proof of %s holds" }.freeze
      CLAIMS = { holds: "holds", smaller: "at most half of it is left", fails: "does not hold",
                 undecided: "undecided", missing: "was not measured" }.freeze
      STYLES = { holds: :green, undecided: :yellow }.freeze
      private_constant :WORDS, :CLAIMS, :STYLES

      # @param commit its first digits and its title
      # @param notes what differs from when the proof was made
      #: (
      #    Analyse::ProofCheck, proof: Record::Proof, report: Analyse::ComparisonReport, commit: String,
      #    notes: Array[String], version: String?
      #  ) -> void
      def initialize(check, proof:, report:, commit:, notes:, version:)
        @check = check
        @proof = proof
        @report = report
        @commit = commit
        @notes = notes
        @version = version
      end

      #: (width: Integer, palette: untyped) -> Array[String]
      def lines(width:, palette:)
        head = format(WORDS.fetch(@check.verdict), @commit)
        claims = @check.outcomes.flat_map do |outcome|
          first, *more = claim(outcome).map { |text| Text.wrap(text, width - 4) }
          style = STYLES.fetch(outcome.verdict, :red)
          ["", *first.map { |line| palette.public_send(style, line) }, *more.flatten.map { |line| "  #{line}" }]
        end
        notes = @notes.flat_map { |text| Text.wrap("! #{text}", width).map { |line| palette.yellow(line) } }
        [*Text.wrap(head, width).map { |line| palette.bold(line) }, *claims, *("" if notes.any?), *notes]
      end

      # The JSON text.
      #: () -> String
      def json
        claims = @check.outcomes.map do |outcome|
          claim = outcome.claim.to_h.slice(:name, :metric, :verdict, :point, :low, :high, :level, :exact, :pairs)
          now = outcome.effect && JsonValues.effect(outcome.effect)
          { "verdict" => outcome.verdict, "claim" => claim, "now" => now }
        end
        body = { "schema" => SCHEMA, "commit" => @commit, "verdict" => @check.verdict, "claims" => claims,
                 "notes" => @notes, "proof" => @proof.to_h.slice(:base, :tree, :benchmark, :environment, :command),
                 "environment" => ProofTrailers.environment(@report, @version) }
        JSON.generate(JsonValues.clean(body))
      end

      private

      def claim(outcome)
        claim, effect = outcome.claim, outcome.effect
        title = "#{claim.name}, #{EffectWords.title(claim.metric)}: #{CLAIMS.fetch(outcome.verdict)}"
        return [title, "then: #{then_words(claim)}"] unless effect

        now = [effect.a, effect.b].map { |value| Figures.value(value, effect.unit) }.join(" → ")
        now += sized(effect) if Figures.sized?(effect.ratio)
        [title, "then: #{then_words(claim)}",
         "now: #{now}, #{Units.things(effect.pairs.to_i, "pair")}, #{EffectWords.short(effect)}#{reason(effect)}"]
      end

      def reason(effect) = effect.reason ? " (#{effect.reason})" : ""

      def sized(effect)
        return ", #{Figures.change(effect.ratio)}" if effect.exact

        ", #{Figures.change(effect.ratio)} (#{Figures.range(effect.ratio)})"
      end

      def then_words(claim)
        ratio = Analyse::Estimate.new(claim.point, claim.low, claim.high, claim.level, claim.pairs)
        sized = sized(Struct.new(:ratio, :exact).new(ratio, claim.exact)) if Figures.sized?(ratio)
        "#{claim.values}#{sized}, #{Units.things(claim.pairs, "pair")}, #{claim.verdict}#{", exact" if claim.exact}"
      end
    end
  end
end
