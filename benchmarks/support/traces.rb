# frozen_string_literal: true

require "json"
require_relative "planted"
require "pitwall/record/sample"

module Benchmarks
  # Real measurements of two identical sides, kept so that the test suite can measure again from them:
  # benchmarks/traces/CASE-LOAD.jsonl. The first line says how they were made. Each other line is a pair: of the process
  # that ran first and of the second [median of the first half of its batches, of all, of the second half, each without
  # garbage collection; mean with it; ns an iteration; 1 where the process was not steady; and where the collector ran
  # its mean time].
  class Trace
    FOLDER = File.expand_path("../traces", __dir__)
    private_constant :FOLDER

    attr_reader :head, :pairs

    class << self
      #: (String, String) -> String
      def path(planted, load) = File.join(FOLDER, "#{planted}-#{load}.jsonl")

      # @return [Array<Trace>] of all files
      #: () -> Array[Trace]
      def all = Dir[File.join(FOLDER, "*.jsonl")].sort.map { |path| read(path) }

      #: (String) -> Trace
      def read(path)
        head, *pairs = File.readlines(path).map { |line| JSON.parse(line) }
        new(head, pairs)
      end

      # A process as a pair keeps it.
      #: (Pitwall::Record::Sample) -> Array[Integer]
      def process(sample)
        values = Pitwall::Analyse::ProcessStatistic.outside_gc(sample, "wall")
        half = [values.size / 2, 1].max
        gc = sample["gc_time"].to_a
        medians = [values.first(half), values, values.last(half)].map { |part| median(part) }
        [*medians, mean(sample["wall"]), sample.notes.include?(:unsteady) ? 1 : 0,
         *(mean(gc) if gc.any?(&:positive?))].map(&:round)
      end

      # A pair as it is kept. If the processes ran in turns, the second's values are the first's multiplied by the ratio
      # of batch to batch.
      #: (Array[Pitwall::Record::Sample]) -> Array[Array[Integer]]
      def pair(samples)
        rows = samples.map { |sample| process(sample) }
        return rows unless samples.all? { |sample| sample.notes.include?(:in_turns) }

        batches = samples.map { |sample| Pitwall::Analyse::ProcessStatistic.outside_gc(sample, "wall") }
        logarithms = batches.inject(:zip).map { |one, other| Math.log(other.fdiv(one)) }
        half = [logarithms.size / 2, 1].max
        parts = [logarithms.first(half), logarithms, logarithms.last(half)]
        parts.each_with_index { |part, at| rows[1][at] = (rows[0][at] * Math.exp(median(part))).round }
        rows
      end

      private

      def median(values) = Pitwall::Analyse::Statistics.median(values)
      def mean(values) = Pitwall::Analyse::Statistics.mean(values)
    end

    # head: case, load, block_ns (what a pair took, with everything), batches. For readers also the date, Ruby, machine
    # and host readings.
    #: (Hash[String, untyped], Array[[Array[Integer], Array[Integer]]]) -> void
    def initialize(head, pairs)
      @head = head
      @pairs = pairs
    end

    def planted = head.fetch("case")
    def load = head.fetch("load")
    def name = "#{planted}, #{load}"

    # How many pairs a budget holds.
    #: (Float) -> Integer
    def pairs_in(seconds) = (seconds * 1e9 / head.fetch("block_ns")).floor

    # How the logarithm of the ratio of both processes varies from pair to pair, by the procedure's statistic and by the
    # mean: interquartile distances, as standard deviations.
    #: () -> Hash[String, Float]
    def spreads
      statistics = { "median and mean GC" => ->(process) { process[1] + process[5].to_i },
                     "mean" => ->(process) { process[3] } }
      statistics.transform_values do |statistic|
        logarithms = pairs.map { |pair| Math.log(statistic[pair[1]].fdiv(statistic[pair[0]])) }
        [0.75, 0.25].map { |share| Pitwall::Analyse::Statistics.quantile(logarithms, share) }.inject(:-) / 1.349
      end
    end

    #: () -> void
    def write
      File.write(self.class.path(planted, load), [head, *pairs].map { |line| "#{JSON.generate(line)}\n" }.join)
    end

    # A process as the procedure gets it, its times multiplied. Median and trend are the real ones, however many batches
    # there were.
    #: (Array[Integer], String, Integer, Integer, ?Float, ?whole: bool) -> Pitwall::Record::Sample
    def sample(process, side, block, order, factor = 1.0, whole: true)
      first, middle, last, _mean, unsteady, gc = process
      batches = whole && head.fetch("batches") > 1 ? [first, first, middle, last, last] : [middle]
      times = { "wall" => batches.map { |batch| (batch + gc.to_i) * factor } }
      times["gc_time"] = batches.map { gc * factor } if gc
      Pitwall::Record::Sample.new(side: side, name: planted, block: block, order: order, values: times,
                                  notes: unsteady == 1 ? [:unsteady] : [])
    end
  end
end
