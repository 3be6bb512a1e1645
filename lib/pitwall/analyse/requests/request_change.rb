# frozen_string_literal: true

require "pitwall/analyse/statistics/effect"
require "pitwall/analyse/statistics/estimate"
require "pitwall/analyse/requests/queries"
require "pitwall/analyse/requests/requests"
require "pitwall/analyse/recording/selection"
require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    # How requests (or jobs) changed from the recordings of one side to those of the other, by route: time per request
    # and queries per request.
    #
    # Each side has a list of values, and their means are compared. What a value is depends on the recordings:
    # - Three recordings or more on each side: a value is a recording's mean. The interval includes the differences
    #   between runs.
    # - Fewer, and every request was recorded one by one: a value is the mean of consecutive requests. The interval
    #   does not include differences between runs.
    # - Fewer, and only the slowest requests of each second were recorded one by one: a value is the mean of all
    #   requests of one second or of several.
    # The level of the intervals is corrected for the number of tests (Bonferroni). The probability of any false alarm
    # in all routes together is below ALPHA.
    class RequestChange
      # Labels that name the kind of a request. The first one that all recordings have is used.
      NAMES = %w[route job].freeze
      ALPHA = 0.01
      MARGIN = 0.01
      POWER = 0.8
      SECOND_NS = 1_000_000_000
      # Fewest requests of a route on each side for a verdict.
      LEAST = 5
      # Number of values, each the mean of consecutive requests. So one slow second affects only one value.
      BATCHES = 20
      # Fewest recordings of each side whose means are values.
      RUNS = 3
      TIME = "request_time"
      QUERIES = "queries_per_request"
      # Fewest seconds with requests of a route whose means are values.
      SECONDS = 3
      RECORDINGS = "#{RUNS} recordings of each side (--before FILE, --after FILE)".freeze
      NOT_ALL = "not every request was recorded one by one (only the 64 slowest of each second)"
      UNKNOWN = "#{NOT_ALL}: recordings with requests in #{SECONDS} seconds or more are needed, or #{RECORDINGS}".freeze
      UNCOUNTED = "#{NOT_ALL}: #{RECORDINGS} are needed".freeze
      private_constant :NAMES, :MARGIN, :POWER, :SECOND_NS, :LEAST, :BATCHES, :SECONDS, :RECORDINGS, :NOT_ALL, :UNKNOWN,
                       :UNCOUNTED

      # One route on one side.
      #
      # count:    number of all requests
      # ns:       sum of their times
      # runs:     by recording: requests that were recorded one by one, in their order, as [ns, queries]
      # whole:    whether runs has all requests, not only the slowest
      # seconds:  by recording: mean times of all requests of each second, in ns
      # means:    by recording: [ns per request, queries per request]
      # constant: queries of every request; nil if requests differ
      # queried:  whether any request made a query
      Side = Struct.new(:count, :ns, :runs, :whole, :seconds, :means, :constant, :queried, keyword_init: true) do
        # Whether there are values of all requests, one by one or as means of seconds.
        #: () -> bool
        def complete? = whole || seconds.sum(&:size) >= SECONDS
      end
      private_constant :Side

      # @return [Array<Effect>] the route with most total time first; its time before its queries
      attr_reader :effects
      # @return [Boolean] whether the intervals include differences between runs
      attr_reader :between_runs

      # @param recordings [Array<Array<Array<Record::Segment>>>] by side (base first) and recording: its segments
      # @param base [String] name of the first side
      # @param side [String] name of the second side
      # @param labels [Hash, nil] {name => value} that requests must have
      #: (Array[Array[Array[Record::Segment]]], base: String, side: String, ?labels: Hash[String, String]?) -> void
      def initialize(recordings, base:, side:, labels: nil)
        @base = base
        @side = side
        @selection = Selection.new(labels: labels)
        @between_runs = recordings.all? { |runs| runs.size >= RUNS }
        @effects = compare(recordings)
      end

      # Whether any route is on both sides.
      #: () -> bool
      def any? = @effects.any?

      private

      def compare(recordings)
        name = NAMES.find { |wanted| recordings.flatten(1).all? { |segments| label?(segments, wanted) } } or return []

        sides = recordings.map { |runs| by_route(runs, name) }
        routes = (sides[0].keys & sides[1].keys).sort_by { |route| [-sides[0][route].ns, route] }
        tests = routes.sum { |route| queried?(sides, route) ? 2 : 1 }
        level = 1 - ALPHA / [tests, 1].max
        routes.flat_map do |route|
          both = sides.map { |side| side[route] }
          [time(route, both, level), (queries(route, both, level) if queried?(sides, route))].compact
        end
      end

      def label?(segments, name)
        segments.any? { |segment| segment.works.any? { |work| segment.labels(work.label_id).key?(name) } }
      end

      def queried?(sides, route) = sides.any? { |side| side[route].queried }

      # --- reading the recordings

      # Route → Side.
      def by_route(runs, name)
        found = runs.map { |segments| of_run(segments, name) }
        routes = found.map(&:keys).inject(:&)
        routes.to_h { |route| [route, side(found.map { |run| run[route] })] }
      end

      def side(parts)
        constants = parts.map { |part| part[:constant] }.uniq
        Side.new(
          count: parts.sum { |part| part[:count] }, ns: parts.sum { |part| part[:ns] },
          runs: parts.map { |part| part[:each] }, whole: parts.all? { |part| part[:each].size == part[:count] },
          seconds: parts.map { |part| seconds(part, BATCHES / parts.size) },
          means: parts.map { |part| [part[:ns].fdiv(part[:count]), part[:queries].fdiv(part[:count])] },
          constant: (constants.first if constants.size == 1), queried: parts.any? { |part| part[:queries].positive? }
        )
      end

      # Route → sums and requests of one recording.
      def of_run(segments, name)
        found = Hash.new do |all, route|
          all[route] = { count: 0, ns: 0, queries: 0, known: [], steps: [], sums: Hash.new(0), most: Hash.new(0) }
        end
        segments.each do |segment|
          read_works(segment, name, found)
          read_queries(segment, name, found)
        end
        Requests.new(segments).rows(@selection).each do |row|
          route = row.labels[name] or next
          found[route][:known] << [row.start_ns, row.duration_ns, asked(row.segment, row.mark)]
        end
        found.select { |_, part| part[:count].positive? }.transform_values { |part| finished(part) }
      end

      def read_works(segment, name, found)
        segment.works.each do |work|
          route = labels(segment, work.label_id)[name] or next
          found[route][:count] += work.count
          found[route][:ns] += work.total_ns
        end
        segment.work_steps.each do |step|
          route = labels(segment, step.label_id)[name] or next
          found[route][:steps] << [segment.header.started_at_ns.to_i + step.at_ns, step.count, step.total_ns]
        end
      end

      # Sums of queries and the largest number in one request, by line and text.
      # If the sum is this number times the number of requests, every request makes the query equally often.
      def read_queries(segment, name, found)
        segment.query_sums.each do |sum|
          route = labels(segment, sum.label_id)[name] or next
          query = Queries.query(segment, sum.query_id)
          next unless query.kind == Queries::ASKED

          key = [query.path, query.line, query.digest]
          part = found[route]
          part[:queries] += sum.count
          part[:sums][key] += sum.count
          part[:most][key] = [part[:most][key], sum.most].max
        end
      end

      # Labels of a label set; none if the selection does not match it.
      def labels(segment, label_id) = @selection.labels?(segment, label_id) ? segment.labels(label_id) : {}

      def asked(segment, mark)
        parts = segment.query_parts[[mark.thread_id, mark.end_ns]] || []
        parts.sum { |part| segment.queries[part.query_id]&.kind.to_i == Queries::ASKED ? part.count : 0 }
      end

      def finished(part)
        even = part[:sums].all? { |key, count| count == part[:most][key] * part[:count] }
        each = part[:known].sort.map { |_, ns, queries| [ns, queries] }
        { **part, constant: (part[:most].each_value.sum if even), each: each }
      end

      # Mean times of seconds. Consecutive seconds are merged until each has at least half the usual number of requests,
      # because the mean of a few requests varies too much.
      # @param most [Integer] most values to return
      def seconds(part, most)
        steps = part[:steps].sort
        most = [steps.map { |at,| at / SECOND_NS }.uniq.size, most].min
        groups = steps.each_with_object([]) do |(_, count, ns), all|
          all << [0, 0] if all.empty? || all.last[0] * most * 2 >= part[:count]
          all.last[0] += count
          all.last[1] += ns
        end
        if groups.size > 1 && groups.last[0] * most * 2 < part[:count]
          last = groups.pop
          groups << groups.pop.zip(last).map(&:sum)
        end
        groups.map { |count, ns| ns.fdiv(count) }
      end

      # --- effects

      def time(route, both, level)
        effect(route, TIME, "ns", both, level, 0, %i[faster slower], trim: Statistics::TRIM)
      end

      def queries(route, both, level)
        return exact(route, *both) if both.all?(&:constant)

        effect(route, QUERIES, "count", both, level, 1, %i[fewer more], trim: 0)
      end

      def exact(route, one, other)
        ratio = one.constant.zero? ? nil : other.constant.fdiv(one.constant)
        estimate = Estimate.new(ratio, ratio, ratio, 1.0, [one.count, other.count].min)
        verdict = %i[same more fewer][other.constant <=> one.constant]
        Effect.new(**fields(route, QUERIES, "count"), a: one.constant.to_f, b: other.constant.to_f, ratio: estimate,
                                                      verdict: verdict, exact: true)
      end

      def fields(route, metric, unit)
        { name: route, side: @side, base: @base, metric: metric, unit: unit, margin: MARGIN, below_margin: false }
      end

      # @param at [Integer] index in the pairs [ns, queries]
      def effect(route, metric, unit, sides, level, at, verdicts, trim:)
        means = sides.map { |side| mean(side.means.map { |pair| pair[at] }) }
        made = { **fields(route, metric, unit), a: means[0], b: means[1], exact: false, verdict: :undecided }
        reason = reason_undecided(sides, at)
        parts = sides.map { |side| part(side, at, trim) } unless reason
        reason ||= "the mean of one side is 0" if parts&.any? { |part| part.point.zero? }
        return Effect.new(**made, ratio: Estimate.new(nil, nil, nil, level, 0), reason: reason) if reason

        ratio, smallest = ratio(parts, level)
        return bound(made, sides, parts, ratio) unless @between_runs || sides.all?(&:complete?)

        Effect.new(**made, a: parts[0].point, b: parts[1].point, ratio: ratio, verdict: verdict(ratio, verdicts),
                           smallest_detectable: smallest, below_margin: below_margin?(ratio))
      end

      def mean(values) = @between_runs ? Statistics.mean(values) : values.sum.fdiv(values.size)

      def part(side, at, trim)
        values(side, at).then { |list| Statistics.yuen(list, trim: trimmed(side, list.size, trim)) }
      end

      def below_margin?(ratio)
        return false if ratio.low.nil?

        ratio.low > 1 ? ratio.point < 1 + MARGIN : ratio.high < 1 && ratio.point > 1 - MARGIN
      end

      # Share of values to trim at each end; at least one value if values are seconds.
      # Seconds are few, and the first one contains the program's warm-up.
      def trimmed(side, size, trim)
        by_second = !@between_runs && !side.whole && side.complete?
        trim.positive? && by_second && size >= LEAST ? [trim, 1.fdiv(size) + Float::EPSILON].max : trim
      end

      # Effect where one side has only its slowest requests one by one. These take longer than all its requests.
      # If they are faster than the other side's, all requests are faster, but by an unknown amount.
      def bound(made, sides, parts, ratio)
        faster = sides[0].complete? && ratio.high < 1
        slower = sides[1].complete? && ratio.low > 1
        unless faster || slower
          return Effect.new(**made, ratio: Estimate.new(nil, nil, nil, ratio.level, 0), reason: UNKNOWN)
        end

        incomplete = faster ? @side : @base
        reason = "only the slowest requests of #{incomplete} were recorded one by one and compared, " \
                 "without the most extreme: the trimmed mean changed by at least this"
        Effect.new(**made, a: parts[0].point, b: parts[1].point, ratio: ratio, verdict: faster ? :faster : :slower,
                           reason: reason)
      end

      # Why nothing can be decided; nil if it can.
      def reason_undecided(sides, at)
        return if @between_runs

        fewest = sides.map(&:count).min
        return "#{fewest} requests; #{LEAST} are needed on each side" if fewest < LEAST

        return (UNCOUNTED unless sides.all?(&:whole)) if at == 1

        return UNKNOWN if sides.none?(&:complete?)

        UNKNOWN if sides.any? { |side| !side.complete? && side.runs.sum(&:size) < LEAST }
      end

      # Ratio of the means with its interval, and the smallest change that would be detected with probability POWER.
      # The squared relative standard errors of the means add up to that of the ratio's logarithm.
      # The degrees of freedom are Welch's (Welch-Satterthwaite).
      def ratio(parts, level)
        variances = parts.map { |part| (part.standard_error / part.point)**2 }
        error = Math.sqrt(variances.sum)
        degrees = if variances.sum.zero? then 1
                  else variances.sum**2 / variances.zip(parts).sum { |variance, part| variance**2 / part.degrees }
                  end
        middle = Math.log(parts[1].point / parts[0].point)
        reach = -Statistics.student_quantile((1 - level) / 2, degrees) * error
        power = -Statistics.student_quantile(1 - POWER, degrees) * error
        logarithm = Estimate.new(middle, middle - reach, middle + reach, level, parts.map(&:n).min)
        [logarithm.map { |log| Math.exp(log) }, Math.exp(reach + power) - 1]
      end

      def verdict(ratio, (less, more))
        return less if ratio.high < 1
        return more if ratio.low > 1

        ratio.low > 1 - MARGIN && ratio.high < 1 + MARGIN ? :same : :undecided
      end

      # The values of one side, see the class. at: index in the pairs [ns, queries].
      def values(side, at)
        return side.means.map { |mean| mean[at] } if @between_runs
        return side.seconds.flatten if !side.whole && side.complete?

        side.runs.flat_map do |run|
          most = [BATCHES / side.runs.size, 1].max
          run.each_slice([run.size.fdiv(most).ceil, 1].max).map { |batch| batch.sum { |one| one[at] }.fdiv(batch.size) }
        end
      end
    end
  end
end
