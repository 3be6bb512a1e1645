# frozen_string_literal: true

require "pitwall/analyse/statistics/effect"
require "pitwall/analyse/statistics/estimate"
require "pitwall/analyse/requests/queries"
require "pitwall/analyse/requests/requests"
require "pitwall/analyse/recording/selection"
require "pitwall/analyse/statistics/statistics"

module Pitwall
  module Analyse
    # What became of requests (or jobs) from the recordings of one side to those of another, by route: time a request, queries
    # a request.
    #
    # With three recordings a side or more a value is a recording's mean, so that the doubt holds what differs from run to run.
    # With fewer a value is the mean of requests that followed each other, and the interval says nothing of other runs. Of
    # each second the slowest requests only are known one by one: where that is not all, a value is the mean of all requests
    # of a second (or of several).
    # Intervals are of all routes together (Bonferroni): the chance of any false alarm among them is below ALPHA.
    class RequestChange
      # What tells kinds of work apart, the first that all recordings have.
      NAMES = %w[route job].freeze
      ALPHA = 0.01
      MARGIN = 0.01
      POWER = 0.8
      SECOND_NS = 1_000_000_000
      # Requests of a route on each side, below which nothing is said.
      LEAST = 5
      # Means of requests that followed each other: one slow second is one value.
      BATCHES = 20
      RUNS = 3
      TIME = "request_time"
      QUERIES = "queries_per_request"
      # Seconds with requests of a route, from which their means tell.
      SECONDS = 3
      RECORDINGS = "#{RUNS} recordings of each side (--before FILE, --after FILE)".freeze
      UNKNOWN = "not every request is known by itself (the 64 slowest of each second are): recordings with requests in #{SECONDS} seconds or more are needed, or #{RECORDINGS}".freeze
      UNCOUNTED = "not every request is known by itself (the 64 slowest of each second are): #{RECORDINGS} are needed".freeze
      private_constant :NAMES, :MARGIN, :POWER, :SECOND_NS, :LEAST, :BATCHES, :SECONDS, :RECORDINGS, :UNKNOWN, :UNCOUNTED

      # Of one route on one side. count, ns: of all requests; runs: of each recording its requests, one by one in their order, [ns, queries];
      # whole: whether these are all, or the slowest; seconds: of each recording the mean time of all requests of each second, in their order;
      # means: of each recording [ns a request, queries a request]; constant: queries of each request, nil where they differ.
      Side = Struct.new(:count, :ns, :runs, :whole, :seconds, :means, :constant, :queried) do
        # Are there values of all requests?
        #: () -> bool
        def told? = whole || seconds.sum(&:size) >= SECONDS
      end
      private_constant :Side

      # @return [Array<Effect>] the route that took longest first, its time before its queries
      attr_reader :effects
      # @return [Boolean] whether the doubt holds what differs from run to run
      attr_reader :between_runs

      # @param recordings [Array<Array<Array<Record::Segment>>>] of both sides, the base's first
      #: (Array[Array[Array[Record::Segment]]], base: String, side: String, ?labels: Hash[String, String]?) -> void
      def initialize(recordings, base:, side:, labels: nil)
        @base = base
        @side = side
        @selection = Selection.new(labels: labels)
        @between_runs = recordings.all? { |runs| runs.size >= RUNS }
        @effects = compare(recordings)
      end

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

      def label?(segments, name) = segments.any? { |segment| segment.works.any? { |work| segment.labels(work.label_id).key?(name) } }

      def queried?(sides, route) = sides.any? { |side| side[route].queried }

      # --- what the recordings hold

      # Route → Side.
      def by_route(runs, name)
        found = runs.map { |segments| of_run(segments, name) }
        routes = found.map(&:keys).inject(:&)
        routes.to_h { |route| [route, side(found.map { |run| run[route] })] }
      end

      def side(parts)
        constants = parts.map { |part| part[:constant] }.uniq
        Side.new(parts.sum { |part| part[:count] }, parts.sum { |part| part[:ns] }, parts.map { |part| part[:each] }, parts.all? { |part| part[:each].size == part[:count] },
                 parts.map { |part| seconds(part, BATCHES / parts.size) },
                 parts.map { |part| [part[:ns].fdiv(part[:count]), part[:queries].fdiv(part[:count])] },
                 (constants.first if constants.size == 1), parts.any? { |part| part[:queries].positive? })
      end

      def of_run(segments, name)
        found = Hash.new { |all, route| all[route] = { count: 0, ns: 0, queries: 0, known: [], steps: [], sums: Hash.new(0), most: Hash.new(0) } }
        segments.each do |segment|
          read_works(segment, name, found)
          read_queries(segment, name, found)
        end
        Requests.new(segments).rows(@selection).each do |row|
          route = row.labels[name] and found[route][:known] << [row.start_ns, row.duration_ns, asked(row.segment, row.mark)]
        end
        found.select { |_, part| part[:count].positive? }.transform_values { |part| finished(part) }
      end

      def read_works(segment, name, found)
        segment.works.each do |work|
          route = chosen(segment, work.label_id)[name] or next
          found[route][:count] += work.count
          found[route][:ns] += work.total_ns
        end
        segment.work_steps.each do |step|
          route = chosen(segment, step.label_id)[name] or next
          found[route][:steps] << [segment.header.started_at_ns.to_i + step.at_ns, step.count, step.total_ns]
        end
      end

      # By what is asked: where each asks as often in every request, the number is the same in each.
      def read_queries(segment, name, found)
        segment.query_sums.each do |sum|
          route = chosen(segment, sum.label_id)[name] or next
          query = Queries.query(segment, sum.query_id)
          next unless query.kind == Queries::ASKED

          key = [query.path, query.line, query.digest]
          part = found[route]
          part[:queries] += sum.count
          part[:sums][key] += sum.count
          part[:most][key] = [part[:most][key], sum.most].max
        end
      end

      def chosen(segment, label_id) = @selection.labels?(segment, label_id) ? segment.labels(label_id) : {}

      def asked(segment, mark)
        parts = segment.query_parts[[mark.thread_id, mark.end_ns]] || []
        parts.sum { |part| segment.queries[part.query_id]&.kind.to_i == Queries::ASKED ? part.count : 0 }
      end

      def finished(part)
        even = part[:sums].all? { |key, count| count == part[:most][key] * part[:count] }
        { **part, constant: (part[:most].each_value.sum if even), each: part[:known].sort.map { |_, ns, queries| [ns, queries] } }
      end

      # Neighbours are added up until each has half of what is usual: a mean of few says little.
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

      # --- what they say

      def time(route, both, level) = effect(route, TIME, "ns", both, level, 0, %i[faster slower], trim: Statistics::TRIM)

      def queries(route, both, level)
        both.all?(&:constant) ? exact(route, *both) : effect(route, QUERIES, "count", both, level, 1, %i[fewer more], trim: 0)
      end

      def exact(route, one, other)
        ratio = one.constant.zero? ? nil : other.constant.fdiv(one.constant)
        estimate = Estimate.new(ratio, ratio, ratio, 1.0, [one.count, other.count].min)
        verdict = %i[same more fewer][other.constant <=> one.constant]
        Effect.new(**words(route, QUERIES, "count"), a: one.constant.to_f, b: other.constant.to_f, ratio: estimate, verdict: verdict, exact: true)
      end

      def words(route, metric, unit) = { name: route, side: @side, base: @base, metric: metric, unit: unit, margin: MARGIN, below_margin: false }

      def effect(route, metric, unit, sides, level, at, verdicts, trim:)
        means = sides.map { |side| @between_runs ? Statistics.mean(side.means.map { |mean| mean[at] }) : side.means.sum { |mean| mean[at] }.fdiv(side.means.size) }
        made = { **words(route, metric, unit), a: means[0], b: means[1], exact: false, verdict: :undecided }
        reason = doubt(sides, at)
        parts = sides.map { |side| values(side, at).then { |list| Statistics.yuen(list, trim: trimmed(side, list.size, trim)) } } unless reason
        reason ||= "one of the sides has none" if parts&.any? { |part| part.point.zero? }
        return Effect.new(**made, ratio: Estimate.new(nil, nil, nil, level, 0), reason: reason) if reason

        ratio, smallest = ratio(parts, level)
        return bounded(made, sides, parts, ratio) unless @between_runs || sides.all?(&:told?)

        below = !ratio.low.nil? && (ratio.low > 1 ? ratio.point < 1 + MARGIN : ratio.high < 1 && ratio.point > 1 - MARGIN)
        Effect.new(**made, a: parts[0].point, b: parts[1].point, ratio: ratio, verdict: verdict(ratio, verdicts), smallest_detectable: smallest, below_margin: below)
      end

      # Seconds are few, and the first holds the program's warm-up: one value goes at either end.
      def trimmed(side, size, trim)
        by_second = !@between_runs && !side.whole && side.told?
        trim.positive? && by_second && size >= LEAST ? [trim, 1.fdiv(size) + Float::EPSILON].max : trim
      end

      # The slowest requests of a side take longer than all of them: what is faster than the other side by these is faster. How much, they don't say.
      def bounded(made, sides, parts, ratio)
        faster = sides[0].told? && ratio.high < 1
        slower = sides[1].told? && ratio.low > 1
        return Effect.new(**made, ratio: Estimate.new(nil, nil, nil, ratio.level, 0), reason: UNKNOWN) unless faster || slower

        Effect.new(**made, a: parts[0].point, b: parts[1].point, ratio: ratio, verdict: faster ? :faster : :slower,
                           reason: "of #{faster ? @side : @base} the slowest requests only are known one by one and compared, " \
                                   "without the most extreme: the change of the trimmed mean is at least that")
      end

      def doubt(sides, at)
        return if @between_runs
        return "#{sides.map(&:count).min} requests; #{LEAST} are needed on each side" if sides.any? { |side| side.count < LEAST }

        return (UNCOUNTED unless sides.all?(&:whole)) if at == 1

        UNKNOWN if sides.none?(&:told?) || sides.any? { |side| !side.told? && side.runs.sum(&:size) < LEAST }
      end

      # The doubt of each mean, relative to it, adds up to that of their ratio's logarithm (Welch).
      def ratio(parts, level)
        doubts = parts.map { |part| (part.standard_error / part.point)**2 }
        error = Math.sqrt(doubts.sum)
        degrees = doubts.sum.zero? ? 1 : doubts.sum**2 / doubts.zip(parts).sum { |square, part| square**2 / part.degrees }
        middle = Math.log(parts[1].point / parts[0].point)
        reach = -Statistics.student_quantile((1 - level) / 2, degrees) * error
        power = -Statistics.student_quantile(1 - POWER, degrees) * error
        [Estimate.new(middle, middle - reach, middle + reach, level, parts.map(&:n).min).map { |log| Math.exp(log) }, Math.exp(reach + power) - 1]
      end

      def verdict(ratio, (less, more))
        return less if ratio.high < 1
        return more if ratio.low > 1

        ratio.low > 1 - MARGIN && ratio.high < 1 + MARGIN ? :same : :undecided
      end

      def values(side, at)
        return side.means.map { |mean| mean[at] } if @between_runs
        return side.seconds.flatten if !side.whole && side.told?

        side.runs.flat_map do |run|
          most = [BATCHES / side.runs.size, 1].max
          run.each_slice([run.size.fdiv(most).ceil, 1].max).map { |batch| batch.sum { |one| one[at] }.fdiv(batch.size) }
        end
      end
    end
  end
end
