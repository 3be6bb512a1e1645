# frozen_string_literal: true

require "pitwall/analyse/recording/method_info"
require "pitwall/analyse/statistics/statistics"
require "pitwall/record/chunks/collections"
require "pitwall/record/frame"

module Pitwall
  module Analyse
    # When and why the garbage collector ran in the processes of a recording, and how long it stopped the program.
    # Times are in ns, and moments count from the start of the first process.
    # All values come from Record::Collection. Only the code that a pause interrupted comes from samples.
    class GCTimeline
      # A GC run: its process, start and Record::Collection.
      Run = Struct.new(:segment, :at_ns, :collection) do
        #: () -> Integer?
        def pid = segment.header.pid
      end
      # Sums over the runs with one cause. cause, major_cause: as in Record::Collection. longest_ns: longest pause.
      # allocated: objects.
      Cause = Struct.new(:cause, :major_cause, :runs, :total_ns, :longest_ns, :allocated)
      # Statistics of pauses. count; per_second of wall time; longest_ns.
      # median_ns and p99_ns are quantiles of each run's longest pause, because the other pauses (short steps of
      # sweeping) are only counted. Both are nil with few runs.
      Pauses = Struct.new(:count, :per_second, :longest_ns, :median_ns, :p99_ns)
      # A part of the time line. wall_ns: sum over the processes; marking_ns and sweeping_ns: parts of wall_ns; runs and
      # majors: number of runs and of major runs that began in it.
      Bucket = Struct.new(:from_ns, :to_ns, :wall_ns, :marking_ns, :sweeping_ns, :runs, :majors) do
        # Garbage collection as a share of the wall time, 0.0 to 1.0.
        #: () -> Float
        def share = wall_ns.zero? ? 0.0 : (marking_ns + sweeping_ns).fdiv(wall_ns)
      end
      # Fewest runs for quantiles. A run that began before the recording does not count.
      ENOUGH_RUNS = 5
      private_constant :ENOUGH_RUNS
      # A run's longest pause: ns, at_ns and the thread's name. method, path and line: the innermost Ruby code that it
      # interrupted; nil, "" and 0 if no sample shows it.
      Pause = Struct.new(:run, :at_ns, :ns, :thread, :method, :path, :line)

      #: (Array[Record::Segment]) -> void
      def initialize(segments)
        @segments = segments
        @origin = segments.map { |segment| segment.header.started_at_ns }.compact.min
      end

      # Runs, in the order of time.
      #: () -> Array[Run]
      def runs
        @runs ||= @segments.flat_map do |segment|
          segment.collections.map { |collection| Run.new(segment, start_of(segment) + collection.start_ns, collection) }
        end.sort_by(&:at_ns)
      end

      # Whether GC runs were not recorded (gc: false), so that having none means nothing.
      #: () -> bool
      def unrecorded? = @segments.any? { |segment| segment.header.settings["gc"] == false }

      # @return [Integer] number of runs that began
      def count = sum(&:runs)

      # @return [Integer] number of major runs, which mark the whole heap
      def majors = sum(&:majors)

      # @return [Integer] time of marking in ns
      #: () -> Integer
      def marking_ns = sum(&:marking_ns)

      # @return [Integer] time of sweeping in ns
      #: () -> Integer
      def sweeping_ns = sum(&:sweeping_ns)

      # @return [Integer] time of marking and sweeping in ns
      #: () -> Integer
      def total_ns = marking_ns + sweeping_ns

      # @return [Integer] objects allocated up to the last run
      def allocated = sum(&:allocated)

      # Wall time of all processes, in ns.
      #: () -> Integer
      def wall_ns = @segments.sum { |segment| span(segment).then { |from, to| to - from } }

      # total_ns as a share of wall_ns, 0.0 to 1.0.
      #: () -> Float
      def share = wall_ns.zero? ? 0.0 : total_ns.fdiv(wall_ns)

      # Whether a Record::Collection may be the sum of several consecutive runs, because there were many.
      #: () -> bool
      def merged? = runs.any? { |run| run.collection.runs > 1 }

      # Statistics of the pauses.
      #: () -> Pauses
      def pauses
        longest = runs.map { |run| run.collection.longest_ns }
        count = sum(&:pauses)
        return Pauses.new(0, 0.0, 0, nil, nil) if longest.empty?

        whole = runs.map(&:collection).select { |run| run.runs.positive? }.map(&:longest_ns)
        quantiles = [nil, nil]
        if whole.size >= ENOUGH_RUNS
          quantiles = [Statistics.median(whole).round, Statistics.quantile(whole, 0.99).round]
        end
        Pauses.new(count, wall_ns.zero? ? 0.0 : count * 1e9 / wall_ns, longest.max, *quantiles)
      end

      # Runs by cause, longest total time first.
      #: () -> Array[Cause]
      def causes
        groups = runs.map(&:collection).group_by { |run| [run.cause, run.major_cause, run.major?] }
        causes = groups.map do |(cause, major_cause, major), group|
          Cause.new(cause, major_cause || (:major if major), group.sum(&:runs), group.sum(&:total_ns),
                    group.map(&:longest_ns).max, group.sum(&:allocated))
        end
        causes.sort_by { |row| [-row.total_ns, row.cause.to_s, row.major_cause.to_s] }
      end

      # The time line in equal parts.
      # A run's longest pause counts where it happened. The rest of the run's time is spread evenly over its duration.
      #: (Integer) -> Array[Bucket]
      def buckets(parts)
        spans = @segments.map { |segment| span(segment).map { |ns| start_of(segment) + ns } }
        first = spans.map(&:first).min.to_i
        width = [(spans.map(&:last).max.to_i - first).fdiv(parts).ceil, 1].max
        buckets = Array.new(parts) { |at| Bucket.new(first + at * width, first + (at + 1) * width, 0, 0, 0, 0, 0) }
        spans.each { |from, to| each_part(buckets, width, from, to) { |bucket, ns| bucket.wall_ns += ns } }
        runs.each { |run| add_run(run, buckets, width) }
        buckets
      end

      # The longest pauses and the code that they interrupted. Reads the rows once more.
      # @raise [BadRecording] when the file has changed since it was read
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

      # The part of a segment's own time that is looked at, in ns since its start.
      def span(segment) = segment.window || [0, segment.stat("elapsed_ns")]

      def add_run(run, buckets, width)
        collection = run.collection
        total = collection.total_ns
        at = (run.at_ns - buckets.first.from_ns) / width
        bucket = buckets[at] unless at.negative?
        bucket.runs += collection.runs if bucket
        bucket.majors += collection.majors if bucket
        return if total.zero?

        pause_at = run.at_ns + collection.longest_at_ns
        rest = [total - collection.longest_ns, 0].max.fdiv(total)
        each_part(buckets, width, pause_at, pause_at + collection.longest_ns) do |part, ns|
          charge(part, collection, ns.to_f / total)
        end
        return unless rest.positive?

        span = [collection.span_ns, 1].max
        each_part(buckets, width, run.at_ns, run.at_ns + span) do |part, ns|
          charge(part, collection, rest * ns / span)
        end
      end

      def charge(bucket, collection, share)
        bucket.marking_ns += collection.marking_ns * share
        bucket.sweeping_ns += collection.sweeping_ns * share
      end

      def each_part(buckets, width, from, to)
        first = buckets.first.from_ns
        ([(from - first) / width, 0].max..[(to - first) / width, buckets.size - 1].min).each do |at|
          bucket = buckets[at]
          ns = [to, bucket.to_ns].min - [from, bucket.from_ns].max
          yield bucket, ns if ns.positive?
        end
      end

      # Finds the code that each pause interrupted: the first row of its thread that ends after the pause began. This is
      # right because a thread's rows have no gaps.
      def locate(segment, pauses)
        waiting = pauses.group_by { |pause| pause.run.collection.thread_id }
        waiting.each_value { |group| group.sort_by! { |pause| began(segment, pause) } }
        ends = Hash.new { |known, id| known[id] = segment.thread(id).start_ns }
        unit = segment.unit_ns
        segment.each_rows do |rows|
          rows.each do |thread, _, node, wall, _, _|
            queue = waiting[thread] or next
            now = ends[thread] += wall * unit
            set_code(segment, queue.shift, node) while queue.any? && began(segment, queue.first) < now
          end
        end
      end

      def began(segment, pause) = pause.at_ns - start_of(segment)

      def set_code(segment, pause, node)
        node = segment.parents[node] until node.zero? || (ruby?(segment.frame(node)) && segment.lines[node].positive?)
        return if node.zero?

        frame = segment.frame(node)
        pause.method = MethodInfo.new(frame.name, frame.path, frame.first_line, frame.kind)
        pause.path = frame.path
        pause.line = segment.lines[node]
      end

      # Whether a frame is Ruby code in a file. Ruby's own methods in Ruby, e.g. GC.start, have no file.
      def ruby?(frame)
        frame.kind == Record::Frame::RUBY && !frame.path.empty? && !frame.path.start_with?("<internal:")
      end
    end
  end
end
