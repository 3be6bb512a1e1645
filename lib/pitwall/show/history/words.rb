# frozen_string_literal: true

require "pitwall/record/sample"
require "pitwall/show/terminal/figures"

module Pitwall
  module Show
    # Words and figures that all views of a history share.
    module HistoryWords
      UNITS = %w[ns bytes count].freeze
      private_constant :UNITS

      module_function

      # A value with its unit; other tools have other units.
      #: (Float?, String) -> String
      def value(number, unit)
        UNITS.include?(unit) ? Figures.value(number, unit) : "#{Figures.value(number, "count")} #{unit}".strip
      end

      # "+3.1%"; "×2.10" for a large change.
      #: (Float?) -> String
      def change(ratio)
        return "from 0" if ratio.nil?
        return "to 0" if ratio.zero?
        return format("×%.3g", ratio) unless ratio.between?(0.5, 2.0)

        percent = (ratio - 1) * 100
        "#{percent.negative? ? "−" : "+"}#{format("%.1f", percent.abs)}%"
      end

      # The probability of such a change without a cause.
      #: (Float) -> String
      def doubt(p_value) = p_value <= 0.001 ? "≤ 0.001" : format("%.3f", p_value)

      # "2026-11-24 19:05"
      #: (String) -> String
      def time(text) = text.to_s.slice(0, 16).tr("T", " ")

      #: (String?) -> String
      def commit(id) = id.to_s.slice(0, 10)

      #: (String?) -> String
      def host(id) = id || "(mixed)"

      #: (Analyse::ResultSeries) -> String
      def name(one) = "#{one.name}, #{metric(one.series[:metric])}"

      #: (String) -> String
      def metric(name) = Record::METRICS[name]&.title || name

      # What came with a change, in one text.
      #: (Analyse::ResultSeries, Hash[Symbol, untyped]) -> String
      def cause(one, change) = causes(one, change).join(", ")

      # What came with a change: the commit, the other Ruby.
      #: (Analyse::ResultSeries, Hash[Symbol, untyped]) -> Array[String]
      def causes(one, change)
        at = one.index(change)
        commit = at && one.points[at][:commit_id]
        rubies = one.rubies(change)
        parts = ["commit #{commit(commit)}"] if commit
        [*parts, *(rubies.map { |ruby| short(ruby) }.join(" → ") if rubies)]
      end

      # "ruby 3.4.1 (2026-…)" → "ruby 3.4.1"
      #: (String) -> String
      def short(ruby) = ruby[/\A[^(]*[^( ]/].to_s + (ruby[/ \+[A-Z]+JIT\b/].to_s)
    end
  end
end
