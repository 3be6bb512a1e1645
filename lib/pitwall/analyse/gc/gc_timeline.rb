# frozen_string_literal: true

require "pitwall/analyse/tree/method_info"
require "pitwall/analyse/statistics/statistics"
require "pitwall/record/chunks/collections"
require "pitwall/record/frame"

module Pitwall
  module Analyse
    # When the garbage collector ran in the processes of a recording, why, and how long it stopped the program. Times in ns;
    # moments count from the start of the first process. All from what Record::Collection says, none from samples, but for
    # the code that a pause interrupted.
    class GCTimeline
      # A Record::Collection and its place: the process, and when it began.
      Run = Struct.new(:segment, :at_ns, :collection) do
        #: () -> Integer?
        def pid = segment.header.pid
      end
      # runs for one reason: cause and major_cause as in Record::Collection, runs, total_ns, longest_ns (a pause), allocated.
      Cause = Struct.new(:cause, :major_cause, :runs, :total_ns, :longest_ns, :allocated)
      # Of the pauses: count; per_second of wall time; the longest; and median and p99 of each run's longest pause, as the
      # others, short steps of sweeping, are only counted; nil where too few runs tell.
      Pauses = Struct.new(:count, :per_second, :longest_ns, :median_ns, :p99_ns)
      # A part of the time line: wall_ns that processes lived in it, of which marking_ns and sweeping_ns; runs and majors begun.
      Bucket = Struct.new(:from_ns, :to_ns, :wall_ns, :marking_ns, :sweeping_ns, :runs, :majors) do
        #: () -> Float
        def share = wall_ns.zero? ? 0.0 : (marking_ns + sweeping_ns).fdiv(wall_ns)
      end
      # Runs from which there are quantiles; what began before the recording is none.
      ENOUGH_RUNS = 5
      private_constant :ENOUGH_RUNS
      # A run's longest pause: ns, at_ns; thread its name; method, path and line the innermost Ruby code that it interrupted,
      # nil, "" and 0 where samples do not tell.
      Pause = Struct.new(:run, :at_ns, :ns, :thread, :method, :path, :line)

      #: (Array[Record::Segment]) -> void
      def initialize(segments)
        @segments = segments
        @origin = segments.map { |segment| segment.header.started_at_ns }.compact.min
      end

      # In the order of time.
      #: () -> Array[Run]
      def runs
        @runs ||= @segments.flat_map do |segment|
          segment.collections.map { |collection| Run.new(segment, start_of(segment) + collection.start_ns, collection) }
        end.sort_by(&:at_ns)
      end

      # Was nobody to be told of them (gc: false)? Then that there are none says nothing.
      #: () -> bool
      def unrecorded? = @segments.any? { |segment| segment.header.settings["gc"] == false }

      # @return [Integer] how many runs began
      def count = sum(&:runs)

      # @return [Integer] of them, those that marked everything
      def majors = sum(&:majors)

      #: () -> Integer
      def marking_ns = sum(&:marking_ns)

      #: () -> Integer
      def sweeping_ns = sum(&:sweeping_ns)

      #: () -> Integer
      def total_ns = marking_ns + sweeping_ns

      # @return [Integer] objects allocated up to the last run
      def allocated = sum(&:allocated)

      # What all processes lived.
      #: () -> Integer
      def wall_ns = @segments.sum { |segment| segment.stat("elapsed_ns") }

      # total_ns as a share of wall_ns.
      #: () -> Float
      def share = wall_ns.zero? ? 0.0 : total_ns.fdiv(wall_ns)

      # Whether so many runs were recorded that neighbours were added up.
      #: () -> bool
      def merged? = runs.any? { |run| run.collection.runs > 1 }

      #: () -> Pauses
      def pauses
        longest = runs.map { |run| run.collection.longest_ns }
        count = sum(&:pauses)
        return Pauses.new(0, 0.0, 0, nil, nil) if longest.empty?

        whole = runs.map(&:collection).select { |run| run.runs.positive? }.map(&:longest_ns)
        quantiles = whole.size < ENOUGH_RUNS ? [nil, nil] : [Statistics.median(whole).round, Statistics.quantile(whole, 0.99).round]
        Pauses.new(count, wall_ns.zero? ? 0.0 : count * 1e9 / wall_ns, longest.max, *quantiles)
      end

      # Those that cost most first.
      #: () -> Array[Cause]
      def causes
        runs.map(&:collection).group_by { |run| [run.cause, run.major_cause, run.major?] }.map do |(cause, major_cause, major), group|
          Cause.new(cause, major_cause || (:major if major), group.sum(&:runs), group.sum(&:total_ns), group.map(&:longest_ns).max, group.sum(&:allocated))
        end.sort_by { |row| [-row.total_ns, row.cause.to_s, row.major_cause.to_s] }
      end

      # The time line in equal parts. A run's longest pause lies where it was; the rest of its time is spread over its span.
      #: (Integer) -> Array[Bucket]
      def buckets(parts)
        ends = @segments.map { |segment| start_of(segment) + segment.stat("elapsed_ns") }
        width = [ends.max.to_i.fdiv(parts).ceil, 1].max
        buckets = Array.new(parts) { |at| Bucket.new(at * width, (at + 1) * width, 0, 0, 0, 0, 0) }
        @segments.zip(ends) { |segment, to| each_part(buckets, width, start_of(segment), to) { |bucket, ns| bucket.wall_ns += ns } }
        runs.each { |run| place(run, buckets, width) }
        buckets
      end

      # The longest pauses, and what they interrupted. Reads the samples' time line once more.
      # @raise [BadRecording] when the file was changed since
      #: (Integer) -> Array[Pause]
      def longest(limit)
        chosen = runs.max_by(limit) { |run| run.collection.longest_ns }
        pauses = chosen.map do |run|
          collection = run.collection
          thread = run.segment.thread(collection.thread_id)
          Pause.new(run, run.at_ns + collection.longest_at_ns, collection.longest_ns, thread.name, nil, "", 0)
        end
        pauses.group_by { |pause| pause.run.segment }.each { |segment, group| locate(segment, group) }
        pauses
      end

      private

      def sum(&figure) = runs.sum { |run| figure.call(run.collection) }

      def start_of(segment) = (segment.header.started_at_ns || @origin || 0) - (@origin || 0)

      def place(run, buckets, width)
        collection = run.collection
        total = collection.total_ns
        bucket = buckets[run.at_ns / width]
        bucket.runs += collection.runs if bucket
        bucket.majors += collection.majors if bucket
        return if total.zero?

        pause_at = run.at_ns + collection.longest_at_ns
        rest = [total - collection.longest_ns, 0].max.fdiv(total)
        each_part(buckets, width, pause_at, pause_at + collection.longest_ns) { |part, ns| charge(part, collection, ns.to_f / total) }
        span = [collection.span_ns, 1].max
        each_part(buckets, width, run.at_ns, run.at_ns + span) { |part, ns| charge(part, collection, rest * ns / span) } if rest.positive?
      end

      def charge(bucket, collection, share)
        bucket.marking_ns += collection.marking_ns * share
        bucket.sweeping_ns += collection.sweeping_ns * share
      end

      def each_part(buckets, width, from, to)
        (from / width..[to / width, buckets.size - 1].min).each do |at|
          bucket = buckets[at]
          ns = [to, bucket.to_ns].min - [from, bucket.from_ns].max
          yield bucket, ns if ns.positive?
        end
      end

      # A thread's rows leave no gap, so the first that ends after a pause began is what it interrupted.
      def locate(segment, pauses)
        waiting = pauses.group_by { |pause| pause.run.collection.thread_id }
        waiting.each_value { |group| group.sort_by! { |pause| began(segment, pause) } }
        ends = Hash.new { |known, id| known[id] = segment.thread(id).start_ns }
        unit = segment.unit_ns
        segment.each_rows do |rows|
          rows.each do |thread, _, node, wall, _, _|
            queue = waiting[thread] or next
            now = ends[thread] += wall * unit
            name(segment, queue.shift, node) while queue.any? && began(segment, queue.first) < now
          end
        end
      end

      def began(segment, pause) = pause.at_ns - start_of(segment)

      def name(segment, pause, node)
        node = segment.parents[node] until node.zero? || (ruby?(segment.frame(node)) && segment.lines[node].positive?)
        return if node.zero?

        frame = segment.frame(node)
        pause.method = MethodInfo.new(frame.name, frame.path, frame.first_line, frame.kind)
        pause.path = frame.path
        pause.line = segment.lines[node]
      end

      # Not Ruby's own: `GC.start` is a method of a file that nobody has.
      def ruby?(frame) = frame.kind == Record::Frame::RUBY && !frame.path.empty? && !frame.path.start_with?("<internal:")
    end
  end
end
