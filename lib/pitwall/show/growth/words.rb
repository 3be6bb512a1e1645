# frozen_string_literal: true

require "pitwall/show/terminal/sparkline"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # What is said of growing objects beside the table, alike in text and Markdown.
    class ObjectGrowthWords
      NOTHING = "No place's objects keep growing."
      UNKNOWN = "Whether objects keep growing is not known."
      RULE = "a place grows where the number of its living objects rises in each quarter of the time after warm-up (Mann-Kendall test, 1%); doc/allocations.md"

      # 1_234.5 → 1230: more figures are not known.
      #: (Float) -> Integer
      def self.rounded(number) = number.round(3 - [number.abs.to_i.digits.size, 3].max)

      #: (Analyse::ObjectGrowth) -> void
      def initialize(growth)
        @growth = growth
      end

      # "41 collections looked at, 22 of them full, after 1.05 s of warm-up"
      #: () -> String
      def looked
        @growth.processes.map do |process|
          who = @growth.processes.size > 1 ? "process #{process.segment.header.pid}: " : ""
          "#{who}#{Units.things(process.judged.size, "collection")} looked at, #{process.full} of them full, after #{Units.duration(process.warm_up_ns)} of warm-up"
        end.join(" · ")
      end

      # "resident memory 17.7 MiB to 19.9 MiB, +1.2 MiB a minute (99%: 0.9 to 1.4 MiB)"
      # @param spark [Proc] a line of [at_ns, bytes]
      #: (spark: ^(Array[untyped]) -> String) -> Array[String]
      def rss(spark:)
        @growth.processes.map do |process|
          who = @growth.processes.size > 1 ? "process #{process.segment.header.pid}: " : ""
          next "#{who}resident memory is not known: this system does not tell it" if process.rss.empty?

          "#{who}resident memory #{Units.bytes(process.rss.first[1])} to #{Units.bytes(process.rss.last[1])}#{rate(process.rss_per_minute)} #{spark.call(process.rss)}".rstrip
        end
      end

      # Of rows whose objects were let go of before the end.
      #: (Array[untyped]) -> Array[String]
      def released(rows)
        return [] unless rows.any?(&:released)

        places = rows.select(&:released).map { |row| "#{File.basename(row.path)}:#{row.line}" }.uniq.first(3)
        ["the objects of #{places.join(", ")} were let go of as the program ended, so they are not retained; what grew is as of the last full collection before"]
      end

      # "held by Shop::ORDERS (Array of 12,000) → Array of 2 → String", a line for each path that differs in more than numbers.
      #: (untyped) -> Array[String]
      def self.holders(row)
        return [] if row.paths.nil?
        return ["held by nothing that was found"] if row.paths.empty?

        row.paths.uniq { |path| path.map { |step| step.gsub(/[\d,]+/, "") } }.map { |path| "held by #{path.join(" → ")}" }
      end

      private

      def rate(estimate)
        return "" if estimate.nil? || estimate.point.nil?

        interval = " (99%: #{signed(estimate.low)} to #{signed(estimate.high)})" if estimate.interval?
        " · #{signed(estimate.point)} a minute after warm-up#{interval}"
      end

      def signed(bytes) = "#{bytes.negative? ? "−" : "+"}#{Units.bytes(bytes.abs.round)}"
    end
  end
end
