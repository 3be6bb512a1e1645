# frozen_string_literal: true

require "pitwall/analyse/requests/queries"

module Pitwall
  module Analyse
    module Findings
      # A line repeats the same database query, within one request or in a program without requests.
      module RepeatedQueries
        # Fewest queries with the same text, as a mean per request.
        REPEATS = 10
        # Fewest queries with the same text in a program without requests.
        REPEATS_ALONE = 100
        SHARE = 0.05
        # Least time of the requests, in ns. Queries are counted and not sampled, so a short time is enough.
        LEAST = 5_000_000
        # Labels that name the kind of work. The first one that the recording has is used.
        NAMES = %w[route job test].freeze
        MOST = 2
        private_constant :REPEATS, :REPEATS_ALONE, :SHARE, :LEAST, :NAMES, :MOST

        # A kind of work. label: [name, value], or nil. count: number of requests or jobs. ns: their time.
        Work = Struct.new(:label, :count, :ns)
        private_constant :Work

        #: (Evidence, Array[Finding]) -> Array[Finding]
        def self.findings(evidence, _found)
          name = NAMES.find { |wanted| evidence.work_labels.any? { |labels| labels.key?(wanted) } }
          rows = Queries.new(evidence.segments).rows_by(name, evidence.selection)
          found = works(evidence, name).flat_map do |work|
            asked = rows.fetch(work.label&.last, []).reject { |row| row.schema? || row.path.empty? }
            groups = asked.group_by { |row| [row.path, row.line, row.digest] }
            groups.each_value.filter_map { |group| finding(evidence, work, group) }
          end
          found.sort_by { |finding| -finding.impact }.first(MOST)
        end

        def self.works(evidence, name)
          works = evidence.segments.flat_map do |segment|
            chosen = Queries.works(segment).select { |work| evidence.selection.labels?(segment, work.label_id) }
            chosen.map { |work| [segment.labels(work.label_id)[name], work] }
          end
          return [Work.new(nil, 0, evidence.work)] if works.empty?

          works.group_by(&:first).map do |value, group|
            Work.new(value && [name, value], group.sum { |_, work| work.count }, group.sum { |_, work| work.total_ns })
          end
        end

        def self.finding(evidence, work, group)
          row = group.max_by(&:count)
          count = group.sum(&:count)
          works = group.map(&:requests).max
          repeats = work.count.zero? ? count : count.fdiv([works, 1].max)
          return if works.zero? && work.count.positive?

          ns = [[time(evidence, row), group.sum(&:ns)].max, work.ns].min
          alone = work.count.zero?
          return if repeats < (alone ? REPEATS_ALONE : REPEATS) || work.ns < (alone ? LEAST_NS : LEAST)
          return if ns < work.ns * SHARE

          figures = { queries: repeats.round, requests: works, count: count, digest: row.digest,
                      cached: group.select(&:cached?).sum(&:count), query_ns: group.sum(&:ns) }
          narrowed = work.label ? ["--label", work.label.join("=")] : []
          evidence.finding(:repeated_queries, [row.path, row.line, row.method&.name], ns, whole: work.ns,
                           of: alone ? :wall : :requests, subject: work.label&.last, label: work.label,
                           figures: figures, view: ["--view", "queries", *narrowed])
        end

        # Sampled time of the line with its callees. It includes making objects from the results.
        def self.time(evidence, row)
          evidence.lines.sum { |line| [line.path, line.line] == [row.path, row.line] ? line.wall : 0 } +
            evidence.waits.sum { |wait| [wait.path, wait.line] == [row.path, row.line] ? wait.wall : 0 }
        end
        private_class_method :works, :finding, :time
      end
    end
  end
end
