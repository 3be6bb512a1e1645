# frozen_string_literal: true

require "pitwall/analyse"

module Pitwall
  module Analyse
    # Everything that views of a recording show, worked out when it is first asked for.
    class Report
      # What is asked of a recording. predict: "PATH:LINE" or a method's name; weight: a Symbol; threshold: percent of the total below which trees end;
      # gc: :happened, :apart or :caller; callers, callees: a method's name; blackbox: names; within: a method or file whose
      # lines are wanted; label_key: the label whose values are wanted; request: Requests::Row that the
      # segments were narrowed to; only_mine: whether the application's frames
      # alone are shown; origin: which these are; waits: whether waiting is
      # to stand among the rest, however long it was.
      Query = Struct.new(:weight, :selection, :threshold, :gc, :blackbox, :callers, :callees, :within, :predict, :label_key, :request, :only_mine,
                         :origin, :waits, keyword_init: true) do
        def initialize(weight: :wall, selection: Selection.all, threshold: 1.0, gc: :happened, blackbox: [], callers: nil, callees: nil, within: nil, predict: nil, label_key: nil, request: nil,
                       only_mine: false, origin: Origin.new, waits: false)
          super
        end
      end

      # @return [Query]
      attr_reader :query
      # @return [Array<Record::Segment>] those of the processes asked for
      attr_reader :segments

      #: (Array[Record::Segment], ?Query) -> void
      def initialize(segments, query = Query.new)
        @all_segments = segments
        @segments = segments.select { |segment| query.selection.segment?(segment) }
        @query = query
      end

      #: () -> Symbol
      def weight = @query.weight

      # A second weight worth standing beside the first.
      #: () -> Symbol?
      def beside
        return { wall: :cpu, cpu: :wall, objects: :bytes, bytes: :objects, gc: :objects }[weight] unless summary.traced?
        return :cpu if weight == :wall && summary.traced_with?("cpu")

        :wall if weight == :cpu
      end

      # What is counted exactly beside that, where calls were traced or objects followed.
      #: () -> Array[Symbol]
      def counted
        return [:calls, *%i[objects bytes].select { |name| summary.traced_with?(name.to_s) }] if summary.traced?

        @segments.any?(&:allocation_totals) ? %i[objects bytes] : []
      end

      #: () -> Summary
      def summary = @summary ||= Summary.new(@segments)

      # @raise [UsageError] when the selection or a --blackbox names what isn't there
      #: () -> CallTree
      def tree
        @tree ||= begin
          @query.selection.check(@all_segments)
          @unfolded = CallTreeBuilder.build(*code, weights: [weight, beside, *counted, *(:wait if summary.traced?)].compact.uniq)
          fold(@unfolded)
        end
      end

      #: () -> Integer
      def total = tree.total(weight)

      #: () -> Array[Flat::Row]
      def flat = @flat ||= Flat.rows(tree, weight, also: [beside, *counted].compact.uniq)

      #: () -> GCTimeline
      def collections = @collections ||= GCTimeline.new(@segments)

      #: () -> GCCost
      def gc_cost = @gc_cost ||= GCCost.new(code.first, weight: weight)

      #: () -> WaitingTime
      def waiting = @waiting ||= WaitingTime.new(@segments, @query.selection)

      # The same report of what ran, where threads waited so long that little else would be seen; else itself.
      #: () -> Report
      def work
        @work ||= apart? ? part(selection: @query.selection.dup.tap { |selection| selection.state = States::RUNNING }) : self
      end

      # The same report of the application's frames only; nil where there are no other frames, or none of the application's.
      #: () -> Report?
      def mine
        return if @query.only_mine

        @mine ||= part(only_mine: true) if tree.methods.map { |method| @query.origin.mine?(method) if method.ruby? }.compact.uniq.size == 2
      end

      # Did the program mark requests or jobs, or wait most of the time?
      #: () -> bool
      def server? = request_count.to_i.positive? || !work.equal?(self)

      # Did threads mostly wait in a method? Then its callers say who waits, and not where time goes.
      #: (MethodInfo) -> bool
      def waits?(method)
        row = flat.find { |one| one.method == method }
        !row.nil? && row.own.positive? && (waiting.rows.assoc(method.name)&.last.to_i * 2 > row.own || method.name.match?(WAITS))
      end

      # The application's heaviest file, nil where there is none.
      #: () -> String?
      def heaviest_file
        files = Flat.rows((mine || self).tree, weight).select { |row| @query.origin.mine?(row.method) }.group_by { |row| row.method.path }
        files.max_by { |path, rows| [rows.sum(&:own), path] }&.first
      end

      # What removing the place asked for would save.
      # @return [GCPrediction, nil] nil where none was asked for
      # @raise [UsageError] no such place
      #: () -> GCPrediction?
      def prediction = @query.predict && (@prediction ||= gc_cost.predict(@query.predict))

      #: () -> Outline::Result
      def top_down = @top_down ||= Outline.top_down(tree, weight, threshold: least, also: (:calls if summary.traced?))

      # ruby-prof's columns: total, self, wait, child, calls.
      #: () -> Array[CallTimes::Row]
      def call_times = @call_times ||= CallTimes.rows(tree, weight)

      #: () -> Outline::Result
      def bottom_up = @bottom_up ||= Outline.bottom_up(tree, weight, threshold: least)

      # All of them, those left out of the other views as well.
      #: () -> Array[Threads::Row]
      def threads = @threads ||= Threads.rows(@segments, @query.selection.dup.tap { |selection| selection.without = nil })

      # Names of the program's threads that are left out, each once.
      #: () -> Array[String]
      def left_out
        @segments.flat_map do |segment|
          threads = (@query.selection.without || {}).fetch(segment, []).map { |id| segment.thread(id) }
          threads.reject { |thread| Threads.own?(thread.name) }.map(&:title)
        end.uniq
      end

      # Times by the values of a label, of all threads.
      # @raise [UsageError] no such label
      #: () -> Labels
      def labels = @labels ||= Labels.new(@segments, @query.selection, name: @query.label_key)

      # Marked work that ended: the slowest.
      #: () -> Array[Requests::Row]
      def requests = @requests ||= marked.rows(@query.selection)

      # Queries to databases by line, what took longest first.
      #: () -> Array[Queries::Row]
      def queries = @queries ||= asked.rows(@query.selection)

      #: () -> Queries::Total
      def query_total = @query_total ||= asked.total(@query.selection)

      # Were queries counted?
      #: () -> bool
      def queries? = asked.any?

      # @return [Array<Queries::Row>] of one request
      #: (Requests::Row) -> Array[Queries::Row]
      def queries_of(request) = asked.of_request(request)

      # Time in the methods of databases' drivers, and what it is a part of; nil where queries were counted, or there is none.
      #: () -> [Integer, Integer]?
      def driver_time
        return if queries?

        @driver_time ||= asked.drivers(@query.selection, origin: @query.origin)
        @driver_time if @driver_time.first.positive?
      end

      # What tests took, the slowest first.
      #: () -> Array[Tests::Row]
      def tests = @tests ||= Tests.new(@all_segments).rows(@query.selection)

      # All marked work of the processes and labels asked for, told one by one or not; nil for a thread's, which isn't counted.
      #: () -> Integer?
      def request_count = marked.count(@query.selection)

      # Of the file or method asked for, in the order of the file; else the heaviest first.
      #: () -> Array[Lines::Row]
      def lines
        @lines ||= begin
          rows = Lines.rows(tree, weight)
          @query.within ? within(rows) : rows
        end
      end

      # @return [Array(Array<MethodInfo>, Neighbours::Result)] the methods the name stands for, and who calls them
      #: () -> [Array[MethodInfo], Neighbours::Result]
      def callers = neighbours(:callers, @query.callers)

      #: () -> [Array[MethodInfo], Neighbours::Result]
      def callees = neighbours(:callees, @query.callees)

      # One report a process, for the same question.
      #: () -> Array[Report]
      def apart = @segments.group_by { |segment| segment.header.pid }.values.map { |segments| Report.new(segments, @query) }

      private

      # Where a Ruby tells no states.
      WAITS = /\A(?:Thread::Mutex\#(?:sleep|lock|synchronize)|Monitor\#synchronize|Kernel[\#.]sleep|Thread\#(?:join|value)|
                    Thread::(?:Sized)?Queue\#pop|Thread::ConditionVariable\#wait|IO\.select|TCPServer\#\w*accept\w*|
                    Process\.wait\w*)\z/x.freeze
      private_constant :WAITS

      def apart?
        weight == :wall && !@query.waits && @query.selection.state.nil? && @segments.any?(&:sampled?) && waiting.apart?
      end

      def part(**parts) = Report.new(@all_segments, @query.dup.tap { |query| parts.each { |name, value| query[name] = value } })

      # Segments and selection, where wanted with the application's frames only.
      def code
        @code ||= @query.only_mine ? OnlyMine.new(@query.origin).narrow(@segments, @query.selection) : [@segments, @query.selection]
      end

      def asked = @asked ||= Queries.new(@all_segments)

      def marked = @marked ||= Requests.new(@all_segments)

      def fold(tree)
        tree = Folding.gc_to_caller(tree) if @query.gc == :caller
        tree = Folding.gc_apart(tree) if @query.gc == :apart
        return tree if @query.blackbox.empty?

        Folding.blackbox(tree, boxes(tree))
      end

      def boxes(tree) = @query.blackbox.flat_map { |name| MethodMatch.find(tree.methods, name) }

      # Folding moves weights, not who called whom; but of what was folded away nothing is told.
      def edges
        return unless summary.traced?

        tree
        @edges ||= CallEdges.new(@unfolded, folded: boxes(@unfolded))
      end

      # At least 1, as what weighs nothing is not shown.
      def least = [(total * @query.threshold / 100r).ceil, 1].max

      def neighbours(kind, name)
        numbers = MethodMatch.find(tree.methods, name)
        [tree.methods.values_at(*numbers), Neighbours.public_send(kind, tree, weight, numbers, edges)]
      end

      def within(rows)
        name = @query.within
        found = rows.select { |row| row.path == name || row.path.end_with?("/#{name}") }
        if found.empty?
          numbers = MethodMatch.find(tree.methods, name, sought: "file or method")
          wanted = tree.methods.values_at(*numbers)
          found = rows.select { |row| wanted.include?(row.method) }
        end
        found.sort_by { |row| [row.path, row.line] }
      end
    end
  end
end
