# frozen_string_literal: true

require "pitwall/analyse/allocations/allocations"
require "pitwall/analyse/threads/processes"
require "pitwall/analyse/statistics/trend"
require "pitwall/errors"

module Pitwall
  module Analyse
    # Places whose living objects keep growing in number. Needs recordings of the living objects over time.
    #
    # After a full mark, the number of living objects is exact. After a minor GC run it lies between two bounds.
    # The lower bound is the objects that existed then and were seen alive at a later full mark. The upper bound is all
    # objects not freed yet.
    #
    # A place grows if all of this holds after warm-up:
    # - There are at least POINTS points.
    # - The last point has at least LEAST objects more than the first.
    # - A Mann-Kendall test finds a rise (Bonferroni over all places).
    # - The number certainly rose in each quarter of the points.
    # So a place that fills once and stops is not reported, nor one that rises and falls.
    # Where bounds differ, the one that makes a rise less likely is used.
    class ObjectGrowth
      # Fewest points for a verdict.
      POINTS = 8
      # Fewest additional objects.
      LEAST = 10
      QUARTERS = 4
      # Probability of a false alarm over all places.
      ALPHA = 0.01
      # Share of the time that is warm-up, unless the caller gives a time.
      WARM_UP = 0.25
      MINUTE = 60_000_000_000
      private_constant :QUARTERS, :ALPHA, :WARM_UP, :MINUTE

      # A place that grows.
      #
      # path, line, method, class_name: the place and the class of its objects
      # per_minute:       Estimate of objects
      # bytes_per_minute: Float; nil if bytes are unknown
      # objects, bytes:   growth over the judged points; bytes are nil if unknown
      # living:           number of objects at the last judged point
      # rss_share:        bytes relative to the growth of resident memory in the same time; nil if that did not grow
      # series:           [at_ns, lower, upper] of all points
      # released:         whether the objects were released before the end
      # processes:        number of processes in which the place grows
      # segment, node:    where it grew most
      # paths:            reference paths from a root to some of the objects at the end; nil if not recorded
      Row = Struct.new(:path, :line, :method, :class_name, :per_minute, :bytes_per_minute, :objects, :bytes, :living,
                       :rss_share, :series, :released, :processes, :segment, :node, :paths, keyword_init: true)

      # A process.
      #
      # files:          number of its recordings, which follow each other
      # points:         all points; judged: those after warm-up; full: number of full marks among judged
      # rss:            [at_ns, bytes] of points
      # rss_per_minute: Estimate of bytes; nil if the system did not report them
      # living:         [at_ns, objects] of all places together
      Process = Struct.new(:segment, :files, :points, :judged, :full, :warm_up_ns, :rss, :rss_per_minute, :living,
                           keyword_init: true) do
        # Whether there are enough points for a verdict.
        #: () -> bool
        def judged? = judged.size >= POINTS
      end

      # @return [Array<Record::Segment>] segments with living objects over time
      attr_reader :segments
      # @return [Array<Process>]
      attr_reader :processes

      # @param warm_up_ns [Integer, nil] earlier points are not judged; nil: a quarter of the time
      #: (Array[Record::Segment], ?warm_up_ns: Integer?) -> void
      def initialize(segments, warm_up_ns: nil)
        @segments = segments.select(&:growth?)
        @allocations = Allocations.new(@segments)
        @warm_up_ns = warm_up_ns
        @processes = Processes.of(@segments).map { |parts| longest(parts) }
      end

      # Whether living objects were recorded over time.
      #: () -> bool
      def any? = @segments.any?

      # Whether any process has enough points for a verdict.
      #: () -> bool
      def judged? = @processes.any?(&:judged?)

      # Places that grow, most bytes first.
      #: () -> Array[Row]
      def rows
        @rows ||= begin
          rows = @processes.select(&:judged?).flat_map { |process| growing(process) }
          merged = rows.group_by { |row| [row.path, row.line, row.class_name] }.values.map { |group| merge(group) }
          merged.sort_by { |row| [-row.bytes.to_i, -row.objects, row.path, row.line, row.class_name] }
        end
      end

      # Lines that say what is missing from the result, and why.
      #: () -> Array[String]
      def losses
        short = @processes.reject(&:judged?)
        losses = @allocations.losses.reject { |text| text.start_with?("what was retained") }
        if short.any?
          most = short.map { |process| process.judged.size }.max
          where = "in #{short.size} of #{@processes.size} processes " if @processes.size > 1
          losses << "#{where}there were too few collections after warm-up to tell growth: #{most}, " \
                    "and it takes #{POINTS}. Let the program run longer"
        end
        unmarked = @processes.count { |process| process.judged? && process.full.zero? }
        losses.concat(@segments.filter_map { |segment| segment.holders&.cut }.uniq)
        in_files = @processes.map(&:files).max.to_i
        if in_files > 1
          losses << "one process has #{in_files} recordings that follow each other, and each forgets the objects " \
                    "of the one before: the longest is judged"
        end
        if unmarked.positive?
          losses << "no full collection ended: living objects are upper bounds, and nothing can be said to grow"
        end
        losses
      end

      private

      # The sites of one place. upper: by point the upper bound of its living objects.
      Group = Struct.new(:key, :method, :sites, :upper, :scale, keyword_init: true)
      private_constant :Group

      # The longest of a process's recordings. A recording has the age only of objects allocated while it was written,
      # so the recordings cannot be joined.
      def longest(parts)
        processes = parts.map { |segment| process(segment, parts.size) }
        processes.max_by { |process| process.judged.empty? ? 0 : process.judged.last.at_ns - process.warm_up_ns }
      end

      def process(segment, files)
        points = segment.living_points
        last = points.last.at_ns
        warm_up = @warm_up_ns || (last * WARM_UP).round
        judged = points.select { |point| point.at_ns >= warm_up }
        rss = judged.select(&:rss)
        Process.new(segment: segment, files: files, points: points, judged: judged, full: judged.count(&:full?),
                    warm_up_ns: warm_up,
                    rss: points.filter_map { |point| [point.at_ns, point.rss] if point.rss },
                    rss_per_minute: (slope(rss.map(&:at_ns), rss.map(&:rss)) if rss.size >= 2),
                    living: points.map { |point| [point.at_ns, point.counts.sum] })
      end

      def slope(times, values) = Trend.slope(times, values).map { |value| value * MINUTE }

      def growing(process)
        groups = groups(process)
        reference, before_end = references(process)
        at = process.points.each_with_index.to_h { |point, index| [point.number, index] }
        candidates = groups.select { |group| group.upper.max.to_i >= LEAST }
        births = [reference, before_end].compact.uniq.to_h { |point| [point, (point.births || []).group_by(&:site)] }
        candidates.filter_map do |group|
          point, released = judged_at(process, group, reference, before_end)
          row(process, group, point, births.fetch(point), at, candidates.size, released) if point
        end
      end

      # The full mark at the end, and the last full mark before.
      def references(process)
        full = process.judged.select(&:full?)
        at_end = full.reverse.find(&:at_end?)
        earlier = full.reverse.reject(&:at_end?).then { |points| points.find(&:births) || points.first }
        at_end ? [at_end, earlier] : [earlier, nil]
      end

      # The full mark to judge a place by, and whether its objects were released before the end.
      # The program releases objects as it ends, e.g. local variables of its main code.
      # Such a place is judged by the last full mark before the end, if this mark is in the later half of the points.
      def judged_at(process, group, reference, before_end)
        return [reference, false] if before_end.nil?

        at = ->(point) { group.upper[process.points.index(point)] }
        return [reference, false] if at.call(reference) * 2 >= at.call(before_end)

        process.judged.index(before_end) >= process.judged.size / 2 ? [before_end, true] : [reference, false]
      end

      def row(process, group, reference, births, at, tested, released)
        rows = group.sites.flat_map { |site| births.fetch(site.id, []) }
        all = series(process, group, reference, rows, at)
        judged = all.drop(process.points.size - process.judged.size)
        judged = judged.first(process.judged.index(reference) + 1)
        exact = judged.select { |_, low, high, full| full && low == high }
        chosen = [exact, judged].find { |points| grows?(points, tested) } or return

        result(process, group, rows, chosen, all, released)
      end

      # [at_ns, lower, upper, full] of each point. After the reference, the lower bound is 0.
      def series(process, group, reference, rows, at)
        born = Array.new(process.points.size, 0)
        rows.each { |row| born[at[row.point]] += row.count if at[row.point] }
        living = 0
        process.points.each_with_index.map do |point, index|
          living += born[index]
          upper = group.upper[index]
          lower = point.full? ? upper : point.number <= reference.number ? [living, upper].min : 0
          [point.at_ns, lower, upper, point.full?]
        end
      end

      def grows?(points, tested)
        return false if points.size < POINTS || points.last[1] - points.first[2] < LEAST

        edges = (0..QUARTERS).map { |part| points[(points.size - 1) * part / QUARTERS] }
        edges.each_cons(2).all? { |from, to| to[1] > from[2] } &&
          Trend.rise_probability(points.map { |_, low, high| [low, high] }) <= ALPHA / tested
      end

      def result(process, group, births, chosen, all, released)
        scale = group.scale
        each = object_bytes(group, births)
        objects = ((chosen.last[1] - chosen.first[2]) * scale).round
        middles = chosen.map { |_, low, high| (low + high) / 2.0 }
        slope = slope(chosen.map(&:first), middles).map { |rate| rate * scale }
        path, line, class_name = group.key
        Row.new(path: path, line: line, method: group.method, class_name: class_name, per_minute: slope,
                objects: objects, bytes: each && (objects * each).round,
                bytes_per_minute: each && (slope.point * each).round,
                living: (chosen.last[1] * scale).round, rss_share: rss_share(process, chosen, each && objects * each),
                series: all.map { |at_ns, low, high| [at_ns, (low * scale).round, (high * scale).round] },
                released: released, processes: 1, segment: process.segment, node: group.sites.max_by(&:count).node,
                paths: paths(process.segment, group))
      end


      def paths(segment, group)
        segment.holders && group.sites.flat_map { |site| segment.holders.paths.fetch(site.id, []) }.uniq
      end
      def object_bytes(group, births)
        known = births.sum(&:bytes)
        return known.fdiv(births.sum(&:count)) if known.positive?

        retained = group.sites.sum(&:retained)
        group.sites.sum { |site| site.retained_bytes.to_i }.fdiv(retained) if retained.positive?
      end

      def rss_share(process, chosen, bytes)
        return if bytes.nil? || process.rss_per_minute.nil? || !process.rss_per_minute.point.positive?

        grown = process.rss_per_minute.point * (chosen.last[0] - chosen.first[0]) / MINUTE
        bytes.fdiv(grown) if grown.positive?
      end

      # Merges the rows of one place in several processes. Rates and growth are added up.
      # The series is that of the process in which the place grew most.
      def merge(rows)
        return rows.first if rows.size == 1

        most = rows.max_by(&:objects)
        sum = ->(name) { rows.sum(&name) if rows.all?(&name) }
        low, high = %i[low high].map do |bound|
          rows.sum { |row| row.per_minute[bound] } if rows.all? { |row| row.per_minute[bound] }
        end
        rate = Estimate.new(rows.sum { |row| row.per_minute.point }, low, high, most.per_minute.level,
                            rows.sum { |row| row.per_minute.n })
        most.dup.tap do |row|
          %i[bytes_per_minute objects bytes living].each { |name| row[name] = sum.call(name) }
          row.per_minute = rate
          row.rss_share = nil
          row.released = rows.all?(&:released)
          row.processes = rows.size
          row.paths = rows.flat_map { |one| one.paths.to_a }.uniq if rows.any?(&:paths)
        end
      end

      def groups(process)
        segment = process.segment
        scale = Allocations.scale(segment)
        index = {}
        groups = {}
        segment.sites.each do |site|
          next unless site.program?

          key = key(segment, site)
          group = groups[key] ||= Group.new(key: key.first(3), method: @allocations.method_name(segment, site),
                                            sites: [], upper: Array.new(process.points.size, 0),
                                            scale: scale.call(site))
          group.sites << site
          index[site.id] = group
        end
        process.points.each_with_index do |point, at|
          point.sites.zip(point.counts) { |site, count| index[site].upper[at] += count if index.key?(site) }
        end
        groups.values
      end

      # Place and class. A site of hidden objects gets the class of the program's other objects from the same stack and
      # of the same type: Ruby code sees such objects only later.
      def key(segment, site)
        path, line = @allocations.line(segment, site)
        return [path, line, site.class_name] unless site.class_name.empty?

        classes = (@classes ||= {}.compare_by_identity)[segment] ||= visible_sites(segment)
        [path, line, classes[[site.node, site.type]]&.max_by(&:count)&.class_name || "(hidden)"]
      end

      def visible_sites(segment)
        segment.sites.reject { |site| site.class_name.empty? }.group_by { |site| [site.node, site.type] }
      end
    end
  end
end
