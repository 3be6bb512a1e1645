# frozen_string_literal: true

require "pitwall/analyse/tree/method_info"
require "pitwall/analyse/recording/origin"
require "pitwall/analyse/recording/selection"
require "pitwall/record/frame"

module Pitwall
  module Analyse
    # Queries to databases: which line of the application asked, how often, and how much of the time they took.
    class Queries
      ASKED = 0
      CACHED = 1
      SCHEMA = 2
      # Methods of the drivers, where queries themselves were not counted.
      DRIVERS = /\A(?:SQLite3::(?:Database|Statement|ResultSet)|PG::(?:Connection|Result)|Mysql2::(?:Client|Statement|Result)|Trilogy(?:::\w+)?)[#.]/.freeze
      # What stands for queries that no number was left for.
      NO_DIGEST = "0" * 12
      private_constant :DRIVERS, :NO_DIGEST

      # Queries of one kind and text from one line. path is "" where no code of the application asked; digest: "3f2a90c1d4e5", of the text without
      # literals; kind: ASKED, CACHED or SCHEMA; requests: pieces of work that asked; most: how often one of them did.
      Row = Struct.new(:path, :line, :method, :digest, :kind, :requests, :count, :ns, :most) do
        #: () -> bool
        def schema? = kind == SCHEMA
        #: () -> bool
        def cached? = kind == CACHED
        # "3f2a90c1d4e5" → "3f2a90c1"
        #: () -> String
        def short = digest[0, 8]
      end

      # Of many rows. count, ns: of those that were asked of the database; cached, schema: how many others; repeats: how often one line asked for the
      # same in one piece of work, cached or not.
      Sum = Struct.new(:count, :ns, :cached, :schema, :repeats)

      # Of all: requests: pieces of work that ended; count, ns, cached, schema: as in Sum; of_ns: the time that ns is a part of: that of the requests,
      # or, where there were none, of the processes.
      Total = Struct.new(:requests, :count, :ns, :cached, :schema, :of_ns) do
        #: () -> Float
        def share = of_ns.zero? ? 0.0 : ns.fdiv(of_ns)
        # How many a request; nil where there were none.
        #: () -> Float?
        def mean = requests.zero? ? nil : count.fdiv(requests)
      end

      #: (Array[Record::Segment]) -> void
      def initialize(segments)
        @segments = segments
      end

      # Were queries counted?
      #: () -> bool
      def any? = @segments.any? { |segment| segment.query_sums.any? }

      # @param selection [Selection] process and labels are heeded
      # @return [Array<Row>] what took longest first
      #: (?Selection) -> Array[Row]
      def rows(selection = Selection.all) = rows_by(nil, selection).fetch(nil, [])

      # The same by the values of a label; nil: what has none.
      #: (String?, ?Selection) -> Hash[String?, Array[Row]]
      def rows_by(name, selection = Selection.all)
        found = Hash.new { |all, value| all[value] = {} }
        each_sum(selection) do |segment, sum|
          query = known(segment, sum.query_id)
          row = found[name && segment.labels(sum.label_id)[name]][[query.path, query.line, query.digest, query.kind]] ||= query.dup
          row.requests += sum.works
          row.count += sum.count
          row.ns += sum.ns
          row.most = [row.most, sum.most].max
        end
        found.to_h { |value, rows| [value, sorted(rows.values)] }
      end

      # @param request [Requests::Row]
      # @return [Array<Row>] its own, what took longest first; empty where it asked nothing
      #: (Requests::Row) -> Array[Row]
      def of_request(request)
        segment, mark = request.segment, request.mark
        parts = segment.query_parts[[mark.thread_id, mark.end_ns]] || []
        rows = parts.map do |part|
          known(segment, part.query_id).dup.tap { |row| row.requests, row.count, row.ns, row.most = 1, part.count, part.ns, part.count }
        end
        sorted(rows)
      end

      # All work that ended; of a segment that was narrowed to one piece of work that one.
      #: (Record::Segment) -> Array[Record::Work]
      def self.works(segment)
        return segment.works if segment.works.any?

        segment.marks.group_by(&:label_id).map { |label, marks| Record::Work.new(label, marks.size, marks.sum(&:duration_ns)) }
      end

      # What a number of a segment stands for, without counts.
      #: (Record::Segment, Integer) -> Row
      def self.query(segment, id)
        query = segment.queries[id]
        node = query&.node_id.to_i
        digest = query ? format("%012x", query.digest) : NO_DIGEST
        return Row.new("", 0, nil, digest, query ? query.kind : ASKED, 0, 0, 0, 0) if node.zero?

        frame = segment.frame(node)
        Row.new(frame.path, segment.lines[node], MethodInfo.new(frame.name, frame.path, frame.first_line, frame.kind), digest, query.kind, 0, 0, 0, 0)
      end

      # @param rows [Array<Row>] of one request
      #: (Array[Row]) -> Sum
      def self.sum(rows)
        count = ->(kind) { rows.select { |row| row.kind == kind }.sum(&:count) }
        same = rows.reject { |row| row.schema? || row.digest == NO_DIGEST }.group_by { |row| [row.path, row.line, row.digest] }
        repeats = same.each_value.map { |group| group.sum(&:most) }.max
        Sum.new(count.(ASKED), rows.select { |row| row.kind == ASKED }.sum(&:ns), count.(CACHED), count.(SCHEMA), repeats.to_i)
      end

      # @param selection [Selection] process and labels are heeded
      #: (?Selection) -> Total
      def total(selection = Selection.all)
        works = @segments.flat_map { |segment| works(segment, selection).values }
        sums = []
        each_sum(selection) { |segment, sum| sums << [known(segment, sum.query_id).kind, sum] if works.empty? || works(segment, selection).key?(sum.label_id) }
        counts = Array.new(3) { |kind| sums.sum { |of, sum| of == kind ? sum.count : 0 } }
        ns = sums.sum { |kind, sum| kind == ASKED ? sum.ns : 0 }
        of = works.empty? ? @segments.sum { |segment| selection.segment?(segment) ? segment.stat("elapsed_ns") : 0 } : works.sum(&:total_ns)
        Total.new(works.sum(&:count), counts[ASKED], ns, counts[CACHED], counts[SCHEMA], of)
      end

      # The part of the time that the drivers' own methods took, for programs whose queries nobody counted; only of requests, where there are any.
      # @return [Array(Integer, Integer)] wall ns, and what it is a part of
      #: (?Selection, ?origin: Origin) -> [Integer, Integer]
      def drivers(selection = Selection.all, origin: Origin.new)
        worked = @segments.any? { |segment| works(segment, selection).any? }
        sums = [0, 0]
        @segments.each do |segment|
          inside = below_drivers(segment, origin)
          segment.tallies.each do |tally|
            next if !selection.tally?(segment, tally) || (worked && !works(segment, selection).key?(tally.label_id))

            tally.each do |node, wall, _cpu, _captures|
              sums[0] += wall * segment.unit_ns if inside[node]
              sums[1] += wall * segment.unit_ns
            end
          end
        end
        sums
      end

      private

      def known(segment, id)
        @known ||= {}.compare_by_identity
        (@known[segment] ||= {})[id] ||= Queries.query(segment, id)
      end

      def each_sum(selection)
        @segments.each do |segment|
          next unless selection.segment?(segment)

          segment.query_sums.each { |sum| yield segment, sum if selection.labels?(segment, sum.label_id) }
        end
      end

      # By number of the label set.
      def works(segment, selection)
        return {} unless selection.segment?(segment)

        @works ||= {}
        @works[[segment.object_id, selection.labels]] ||= begin
          chosen = Queries.works(segment).select { |work| work.count.positive? && selection.labels?(segment, work.label_id) }
          chosen.to_h { |work| [work.label_id, work] }
        end
      end

      def sorted(rows) = rows.sort_by { |row| [-row.ns, -row.count, row.path, row.line, row.digest, row.kind] }

      # Which nodes a driver's method stands above, without code of the application that it calls.
      def below_drivers(segment, origin)
        kinds = Hash.new do |known, id|
          frame = segment.frames[id]
          driver = frame && MethodInfo.around(frame.name).match?(DRIVERS)
          known[id] = driver ? :driver : frame && frame.kind == Record::Frame::RUBY && origin.path?(frame.path) ? :mine : :other
        end
        segment.parents.each_with_index.with_object([]) do |(parent, node), inside|
          kind = node.zero? ? :other : kinds[segment.node_frames[node]]
          inside << (kind == :driver || (kind == :other && node.positive? && inside[parent]))
        end
      end
    end
  end
end
