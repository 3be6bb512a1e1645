# frozen_string_literal: true

require "json"
require_relative "planted"

module Benchmarks
  # All live runs so far: one line of JSON each in benchmarks/runs/. Lines are only appended, so that runs of many days
  # add up.
  class ErrorLog
    PATH = File.expand_path("../runs/compare-error-rates.jsonl", __dir__)
    LEVEL = 0.95
    private_constant :LEVEL

    # A count of a count, with the interval that covers the true rate at 95% (Clopper and Pearson 1934).
    Rate = Struct.new(:hits, :runs) do
      #: () -> Float?
      def share = runs.zero? ? nil : hits.fdiv(runs)

      #: () -> [Float, Float]
      def interval
        tail = (1 - LEVEL) / 2
        [hits.zero? ? 0.0 : ErrorLog.solve(hits, runs - hits + 1, tail),
         hits == runs ? 1.0 : ErrorLog.solve(hits + 1, runs - hits, 1 - tail)]
      end

      #: () -> String
      def to_s
        return "–" if runs.zero?

        format("%d of %d (%.1f–%.1f%%)", hits, runs, *interval.map { |bound| bound * 100 })
      end
    end

    # The p at which the incomplete beta function I(a, b) is `chance`.
    #: (Integer, Integer, Float) -> Float
    def self.solve(a, b, chance)
      low, high = 0.0, 1.0
      60.times do
        middle = (low + high) / 2
        below = Pitwall::Analyse::Statistics.incomplete_beta(a.to_f, b.to_f, middle, 1 - middle) < chance
        below ? low = middle : high = middle
      end
      (low + high) / 2
    end

    # The runs of one tool, case and planted difference.
    class Tally
      def initialize(lines)
        @lines = lines
      end

      def runs = @lines.size
      def seconds = @lines.map { |line| line["seconds"] }

      # Of runs in which any of these was said.
      def rate(*verdicts) = Rate.new(@lines.count { |line| verdicts.include?(line["verdict"]) }, runs)

      # Of runs in which a count differed exactly.
      def counted = Rate.new(@lines.count { |line| line["objects"] == "more" }, runs)

      # Of printed intervals that hold the truth; those without an interval cover anything.
      def covered
        with = @lines.select { |line| line.dig("ratio", "low") }
        held = with.count { |line| (line["ratio"]["low"]..line["ratio"]["high"]).cover?(1 + line["truth"]) }
        Rate.new(held, with.size)
      end

      # Of runs during which something else had more than a tenth of the machine.
      def busy = @lines.count { |line| line.dig("host", "others").to_f > 0.1 }

      def +(other) = Tally.new(@lines + other.lines)

      protected

      attr_reader :lines
    end

    def initialize(path = PATH)
      @path = path
    end

    # On a line of its own, even after one that was cut.
    #: (Hash) -> void
    def append(line)
      cut = File.size?(@path) && File.binread(@path, 1, File.size(@path) - 1) != "\n"
      File.write(@path, "#{"\n" if cut}#{JSON.generate(line)}\n", mode: "a")
    end

    # A line that was cut by a crash is no run.
    #: () -> Array[Hash[String, untyped]]
    def lines
      return [] unless File.exist?(@path)

      File.readlines(@path).filter_map do |line|
        JSON.parse(line)
      rescue JSON::ParserError
        nil
      end
    end

    #: (String, String, Float) -> Tally
    def tally(tool, name, planted)
      Tally.new(lines.select { |line| line.values_at("tool", "case", "planted") == [tool, name, planted] })
    end
  end
end
