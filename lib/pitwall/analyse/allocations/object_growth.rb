# frozen_string_literal: true

require "pitwall/analyse/allocations/allocations"
require "pitwall/analyse/threads/processes"
require "pitwall/analyse/statistics/trend"
require "pitwall/errors"

module Pitwall
  module Analyse
    # Which places' objects stay and keep growing in number, of recordings that hold what lived over time.
    #
    # After a full mark the number of living objects is exact. After a minor collection it lies between bounds: objects that
    # lived then and were seen alive at a later full mark (below), and all that were not freed yet (above).
    #
    # A place grows where, after warm-up, at least POINTS points are known, the last is at least LEAST objects above the first,
    # a Mann-Kendall test finds a rise (Bonferroni over all places), and the number surely rose in each quarter of the points:
    # so what fills once and stops is not reported, nor what rises and falls. Doubt counts against a rise.
    class ObjectGrowth
      POINTS = 8
      LEAST = 10
      QUARTERS = 4
      ALPHA = 0.01
      # Warm-up unless the caller says otherwise: this part of the time.
      WARM_UP = 0.25
      MINUTE = 60_000_000_000
      private_constant :QUARTERS, :ALPHA, :WARM_UP, :MINUTE

      # A place that grows. method: its name; class_name; per_minute: Estimate of objects; bytes_per_minute; objects, bytes: by
      # which it grew in the points judged; living: at the last of them; rss_share: bytes over the growth of resident memory in
      # the same time, nil where that did not grow; series: [at_ns, lower, upper] of all points; released: were the objects
      # let go of before the end; processes: how many of them grow here;
      # segment, node: where it grew most; paths: who holds some of its objects at the end, steps from a root, nil where nobody asked. Bytes are nil where they are not known.
      Row = Struct.new(:path, :line, :method, :class_name, :per_minute, :bytes_per_minute, :objects, :bytes, :living, :rss_share,
                       :series, :released, :processes, :segment, :node, :paths, keyword_init: true)

      # What could be judged of a process. files: how many recordings of it follow each other; points: all; judged: those after warm-up; full: full marks among these; rss: points as
      # [at_ns, bytes]; rss_per_minute: Estimate, nil where the system did not tell; living: [at_ns, objects] of all places.
      Process = Struct.new(:segment, :files, :points, :judged, :full, :warm_up_ns, :rss, :rss_per_minute, :living, keyword_init: true) do
        #: () -> bool
        def judged? = judged.size >= POINTS
      end

      # @return [Array<Record::Segment>] those in which it was recorded what lives over time
      attr_reader :segments
      # @return [Array<Process>]
      attr_reader :processes

      # @param warm_up_ns [Integer, nil] points before are not judged; nil: a quarter of the time
      #: (Array[Record::Segment], ?warm_up_ns: Integer?) -> void
      def initialize(segments, warm_up_ns: nil)
        @segments = segments.select(&:growth?)
        @allocations = Allocations.new(@segments)
        @warm_up_ns = warm_up_ns
        @processes = Processes.of(@segments).map { |parts| longest(parts) }
      end

      #: () -> bool
      def any? = @segments.any?

      # Could any process be judged?
      #: () -> bool
      def judged? = @processes.any?(&:judged?)

      # Places that grow, those with most bytes first.
      #: () -> Array[Row]
      def rows
        @rows ||= @processes.select(&:judged?).flat_map { |process| growing(process) }
                            .group_by { |row| [row.path, row.line, row.class_name] }.values.map { |rows| together(rows) }
                            .sort_by { |row| [-row.bytes.to_i, -row.objects, row.path, row.line, row.class_name] }
      end

      # What makes the answer less than whole, in words.
      #: () -> Array[String]
      def losses
        short = @processes.reject(&:judged?)
        losses = @allocations.losses.reject { |text| text.start_with?("what was retained") }
        if short.any?
          most = short.map { |process| process.judged.size }.max
          losses << "#{"in #{short.size} of #{@processes.size} processes " if @processes.size > 1}there were too few collections after " \
                    "warm-up to tell growth: #{most}, and it takes #{POINTS}. Let the program run longer"
        end
        unmarked = @processes.count { |process| process.judged? && process.full.zero? }
        losses.concat(@segments.filter_map { |segment| segment.holders&.cut }.uniq)
        in_files = @processes.map(&:files).max.to_i
        losses << "one process has #{in_files} recordings that follow each other, and each forgets the objects of the one before: the longest is judged" if in_files > 1
        losses << "no full collection ended: living objects are upper bounds, and nothing can be said to grow" if unmarked.positive?
        losses
      end

      private

      # A place's sites, and what is known of them by point.
      Group = Struct.new(:key, :method, :sites, :upper, :scale, keyword_init: true)
      private_constant :Group

      # A recording knows the age only of objects that were made while it was written.
      def longest(parts)
        parts.map { |segment| process(segment, parts.size) }.max_by { |process| process.judged.empty? ? 0 : process.judged.last.at_ns - process.warm_up_ns }
      end

      def process(segment, files)
        points = segment.living_points
        last = points.last.at_ns
        warm_up = @warm_up_ns || (last * WARM_UP).round
        judged = points.select { |point| point.at_ns >= warm_up }
        rss = judged.select(&:rss)
        Process.new(segment: segment, files: files, points: points, judged: judged, full: judged.count(&:full?), warm_up_ns: warm_up,
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

      # The full mark at the end, and the last one before.
      def references(process)
        full = process.judged.select(&:full?)
        at_end = full.reverse.find(&:at_end?)
        earlier = full.reverse.reject(&:at_end?).then { |points| points.find(&:births) || points.first }
        at_end ? [at_end, earlier] : [earlier, nil]
      end

      # What the program lets go of as it ends (local variables of its main code) is judged by the last full mark before, where
      # that lies in the later half of the points.
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
        chosen = [judged.select { |_, low, high, full| full && low == high }, judged].find { |points| grows?(points, tested) } or return

        result(process, group, rows, chosen, all, released)
      end

      # [at_ns, lower, upper, full] of each point; above the reference nothing is known below.
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
        slope = slope(chosen.map(&:first), chosen.map { |_, low, high| (low + high) / 2.0 }).map { |value| value * scale }
        path, line, class_name = group.key
        Row.new(path: path, line: line, method: group.method, class_name: class_name, per_minute: slope, objects: objects,
                bytes: each && (objects * each).round, bytes_per_minute: each && (slope.point * each).round,
                living: (chosen.last[1] * scale).round, rss_share: rss_share(process, chosen, each && objects * each),
                series: all.map { |at_ns, low, high| [at_ns, (low * scale).round, (high * scale).round] },
                released: released, processes: 1, segment: process.segment, node: group.sites.max_by(&:count).node,
                paths: process.segment.holders && group.sites.flat_map { |site| process.segment.holders.paths.fetch(site.id, []) }.uniq)
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

      # Of several processes: rates and growth add up; the line over time is that of the one that grew most.
      def together(rows)
        return rows.first if rows.size == 1

        most = rows.max_by(&:objects)
        sum = ->(name) { rows.sum(&name) if rows.all?(&name) }
        rate = Estimate.new(rows.sum { |row| row.per_minute.point }, *%i[low high].map { |end_of| rows.sum { |row| row.per_minute[end_of] } if rows.all? { |row| row.per_minute[end_of] } },
                            most.per_minute.level, rows.sum { |row| row.per_minute.n })
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
          group = groups[key] ||= Group.new(key: key.first(3), method: @allocations.method_name(segment, site), sites: [], upper: Array.new(process.points.size, 0), scale: scale.call(site))
          group.sites << site
          index[site.id] = group
        end
        process.points.each_with_index do |point, at|
          point.sites.zip(point.counts) { |site, count| index[site].upper[at] += count if index.key?(site) }
        end
        groups.values
      end

      # Objects that were made out of the program's sight and shown to it later are counted with what they then were.
      def key(segment, site)
        path, line = @allocations.line(segment, site)
        return [path, line, site.class_name] unless site.class_name.empty?

        shown = (@shown ||= {}.compare_by_identity)[segment] ||= segment.sites.reject { |one| one.class_name.empty? }.group_by { |one| [one.node, one.type] }
        [path, line, shown[[site.node, site.type]]&.max_by(&:count)&.class_name || "(hidden)"]
      end
    end
  end
end
