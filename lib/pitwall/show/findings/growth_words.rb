# frozen_string_literal: true

require "pitwall/show/terminal/sparkline"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Sentences about growing objects, shared by text and Markdown.
    class ObjectGrowthWords
      NOTHING = "No place's objects keep growing."
      UNKNOWN = "Whether objects keep growing is not known."
      RULE = "a place grows where the number of its living objects rises in each quarter of the time after warm-up " \
             "(Mann-Kendall test, 1%); doc/allocations.md"

      # A number rounded to three figures: 1_234.5 → 1230.
      #: (Float) -> Integer
      def self.rounded(number) = number.round(3 - [number.abs.to_i.digits.size, 3].max)

      #: (Analyse::ObjectGrowth) -> void
      def initialize(growth)
        @growth = growth
      end

      # The collections that growth was judged by:
      # "41 collections looked at, 22 of them full, after 1.05 s of warm-up".
      #: () -> String
      def collections
        @growth.processes.map do |process|
          who = @growth.processes.size > 1 ? "process #{process.segment.header.pid}: " : ""
          "#{who}#{Units.things(process.judged.size, "collection")} looked at, #{process.full} of them full, " \
            "after #{Units.duration(process.warm_up_ns)} of warm-up"
        end.join(" · ")
      end

      # A sentence for each process: "resident memory 17.7 MiB to 19.9 MiB · +1.2 MiB a minute after warm-up".
      # @param spark [Proc] draws [at_ns, bytes] as a line
      #: (spark: ^(Array[untyped]) -> String) -> Array[String]
      def rss(spark:)
        @growth.processes.map do |process|
          who = @growth.processes.size > 1 ? "process #{process.segment.header.pid}: " : ""
          next "#{who}resident memory is not known: this system does not tell it" if process.rss.empty?

          first, last = [process.rss.first, process.rss.last].map { |_, bytes| Units.bytes(bytes) }
          rate = rate(process.rss_per_minute)
          "#{who}resident memory #{first} to #{last}#{rate} #{spark.call(process.rss)}".rstrip
        end
      end

      # A sentence about rows whose objects were released before the end of the program; none without such rows.
      #: (Array[untyped]) -> Array[String]
      def released(rows)
        return [] unless rows.any?(&:released)

        places = rows.select(&:released).map { |row| "#{File.basename(row.path)}:#{row.line}" }.uniq.first(3)
        ["the objects of #{places.join(", ")} were let go of as the program ended, so they are not retained; " \
         "what grew is as of the last full collection before"]
      end

      # A line for each path of references to the objects:
      # "held by Shop::ORDERS (Array of 12,000) → Array of 2 → String". Paths that differ only in numbers are merged.
      #: (untyped) -> Array[String]
      def self.holders(row)
        return [] if row.paths.nil?
        return ["held by nothing that was found"] if row.paths.empty?

        row.paths.uniq { |path| path.map { |step| step.gsub(/[\d,]+/, "") } }.map do |path|
          "held by #{path.join(" → ")}"
        end
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
