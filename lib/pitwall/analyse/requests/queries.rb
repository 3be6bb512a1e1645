# frozen_string_literal: true

require "pitwall/analyse/recording/method_info"
require "pitwall/analyse/recording/origin"
require "pitwall/analyse/recording/selection"
require "pitwall/record/frame"

module Pitwall
  module Analyse
    # Database queries: the line of the application that made each, how often, and how long they took.
    class Queries
      # Kinds of queries: sent to the database, answered by the framework's query cache, about the database's schema.
      ASKED = 0
      CACHED = 1
      SCHEMA = 2
      # Methods of database drivers, for programs whose queries were not counted.
      DRIVERS = /\A(?:SQLite3::(?:Database|Statement|ResultSet)|PG::(?:Connection|Result)|
                      Mysql2::(?:Client|Statement|Result)|Trilogy(?:::\w+)?)[\#.]/x.freeze
      # Digest of all queries beyond the limit of a recording.
      NO_DIGEST = "0" * 12
      private_constant :DRIVERS, :NO_DIGEST

      # Queries with the same kind and text from one line.
      #
      # path:     "" if no code of the application made the query
      # digest:   of the text without literals, e.g. "3f2a90c1d4e5"
      # kind:     ASKED, CACHED or SCHEMA
      # requests: number of requests and jobs that made the query
      # count:    number of queries; ns: their time
      # most:     largest number of these queries in one request
      Row = Struct.new(:path, :line, :method, :digest, :kind, :requests, :count, :ns, :most) do
        #: () -> bool
        def schema? = kind == SCHEMA
        #: () -> bool
        def cached? = kind == CACHED
        # First eight digits of the digest: "3f2a90c1d4e5" → "3f2a90c1"
        #: () -> String
        def short = digest[0, 8]
      end

      # Sums over rows.
      #
      # count, ns:      of queries sent to the database
      # cached, schema: number of queries of the other kinds
      # repeats:        largest number of equal queries that one line made in one request, including cached ones
      Sum = Struct.new(:count, :ns, :cached, :schema, :repeats)

      # Sums over a recording.
      #
      # requests:                 number of requests and jobs that ended
      # count, ns, cached, schema: as in Sum
      # of_ns:                    time of the requests, which includes ns; without requests, that of the processes
      Total = Struct.new(:requests, :count, :ns, :cached, :schema, :of_ns) do
        # The queries' share of the time, 0.0 to 1.0.
        #: () -> Float
        def share = of_ns.zero? ? 0.0 : ns.fdiv(of_ns)
        # Mean number of queries of a request; nil without requests.
        #: () -> Float?
        def mean = requests.zero? ? nil : count.fdiv(requests)
      end

      #: (Array[Record::Segment]) -> void
      def initialize(segments)
        @segments = segments
      end

      # Whether queries were counted.
      #: () -> bool
      def any? = @segments.any? { |segment| segment.query_sums.any? }

      # Queries by line and text.
      # @param selection [Selection] only its process and labels matter
      # @return [Array<Row>] longest total time first
      #: (?Selection) -> Array[Row]
      def rows(selection = Selection.all) = rows_by(nil, selection).fetch(nil, [])

      # Rows by the values of a label. The key nil has the queries without the label.
      #: (String?, ?Selection) -> Hash[String?, Array[Row]]
      def rows_by(name, selection = Selection.all)
        found = Hash.new { |all, value| all[value] = {} }
        each_sum(selection) do |segment, sum|
          query = cached_query(segment, sum.query_id)
          rows = found[name && segment.labels(sum.label_id)[name]]
          row = rows[[query.path, query.line, query.digest, query.kind]] ||= query.dup
          row.requests += sum.works
          row.count += sum.count
          row.ns += sum.ns
          row.most = [row.most, sum.most].max
        end
        found.to_h { |value, rows| [value, sorted(rows.values)] }
      end

      # Queries of one request.
      # @return [Array<Row>] longest total time first; empty if the request made none
      #: (Requests::Row) -> Array[Row]
      def of_request(request)
        segment, mark = request.segment, request.mark
        parts = segment.query_parts[[mark.thread_id, mark.end_ns]] || []
        rows = parts.map do |part|
          cached_query(segment, part.query_id).dup.tap do |row|
            row.requests, row.count, row.ns, row.most = 1, part.count, part.ns, part.count
          end
        end
        sorted(rows)
      end

      # All requests and jobs that ended. A segment narrowed to one request (Requests#narrowed) has only that request.
      #: (Record::Segment) -> Array[Record::Work]
      def self.works(segment)
        return segment.works if segment.works.any?

        segment.marks.group_by(&:label_id).map do |label, marks|
          Record::Work.new(label, marks.size, marks.sum(&:duration_ns))
        end
      end

      # The query with this number in a segment, as a row whose counts are 0.
      #: (Record::Segment, Integer) -> Row
      def self.query(segment, id)
        query = segment.queries[id]
        node = query&.node_id.to_i
        digest = query ? format("%012x", query.digest) : NO_DIGEST
        return Row.new("", 0, nil, digest, query ? query.kind : ASKED, 0, 0, 0, 0) if node.zero?

        frame = segment.frame(node)
        method = MethodInfo.new(frame.name, frame.path, frame.first_line, frame.kind)
        Row.new(frame.path, segment.lines[node], method, digest, query.kind, 0, 0, 0, 0)
      end

      # Sums over the rows of one request.
      # @param rows [Array<Row>]
      #: (Array[Row]) -> Sum
      def self.sum(rows)
        count = ->(kind) { rows.select { |row| row.kind == kind }.sum(&:count) }
        counted = rows.reject { |row| row.schema? || row.digest == NO_DIGEST }
        same = counted.group_by { |row| [row.path, row.line, row.digest] }
        repeats = same.each_value.map { |group| group.sum(&:most) }.max
        asked_ns = rows.select { |row| row.kind == ASKED }.sum(&:ns)
        Sum.new(count.(ASKED), asked_ns, count.(CACHED), count.(SCHEMA), repeats.to_i)
      end

      # Sums over the recording. With requests, only their queries count.
      # @param selection [Selection] only its process and labels matter
      #: (?Selection) -> Total
      def total(selection = Selection.all)
        works = @segments.flat_map { |segment| works(segment, selection).values }
        sums = []
        each_sum(selection) do |segment, sum|
          next unless works.empty? || works(segment, selection).key?(sum.label_id)

          sums << [cached_query(segment, sum.query_id).kind, sum]
        end
        counts = Array.new(3) { |kind| sums.sum { |of, sum| of == kind ? sum.count : 0 } }
        ns = sums.sum { |kind, sum| kind == ASKED ? sum.ns : 0 }
        of_ns = works.empty? ? elapsed_ns(selection) : works.sum(&:total_ns)
        Total.new(works.sum(&:count), counts[ASKED], ns, counts[CACHED], counts[SCHEMA], of_ns)
      end

      # Time in methods of database drivers, for programs whose queries were not counted.
      # With requests, only the time of requests counts.
      # @return [Array(Integer, Integer)] wall ns in drivers, and wall ns of the samples looked at
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

      def elapsed_ns(selection)
        @segments.sum { |segment| selection.segment?(segment) ? segment.stat("elapsed_ns") : 0 }
      end

      def cached_query(segment, id)
        @queries ||= {}.compare_by_identity
        (@queries[segment] ||= {})[id] ||= Queries.query(segment, id)
      end

      def each_sum(selection)
        @segments.each do |segment|
          next unless selection.segment?(segment)

          segment.query_sums.each { |sum| yield segment, sum if selection.labels?(segment, sum.label_id) }
        end
      end

      # Requests and jobs by number of the label set.
      def works(segment, selection)
        return {} unless selection.segment?(segment)

        @works ||= {}
        @works[[segment.object_id, selection.labels]] ||= begin
          works = Queries.works(segment).select { |work| work.count.positive? }
          works.select { |work| selection.labels?(segment, work.label_id) }.to_h { |work| [work.label_id, work] }
        end
      end

      def sorted(rows) = rows.sort_by { |row| [-row.ns, -row.count, row.path, row.line, row.digest, row.kind] }

      # By node: whether it is in a driver. Code of the application that a driver calls is not.
      def below_drivers(segment, origin)
        kinds = Hash.new do |known, id|
          frame = segment.frames[id]
          known[id] = if frame.nil? then :other
                      elsif MethodInfo.around(frame.name).match?(DRIVERS) then :driver
                      elsif frame.kind == Record::Frame::RUBY && origin.path?(frame.path) then :application
                      else :other
                      end
        end
        segment.parents.each_with_index.with_object([]) do |(parent, node), inside|
          kind = node.zero? ? :other : kinds[segment.node_frames[node]]
          inside << (kind == :driver || (kind == :other && node.positive? && inside[parent]))
        end
      end
    end
  end
end
