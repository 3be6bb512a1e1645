# frozen_string_literal: true

require "pitwall/analyse"

module Pitwall
  module Analyse
    # Everything that views of a recording show. Each value is computed at its first use and then kept.
    class Report
      # What the user asks of a recording.
      #
      # weight:           Symbol, e.g. :wall
      # selection:        Selection
      # threshold:        percent of the total; rows of trees with less are left out
      # gc:               :happened, :apart or :caller: how garbage collection is shown (Folding)
      # blackbox:         names of methods whose callees are folded
      # callers, callees: name of the method whose callers or callees are wanted
      # symbol:           name of the method or native function whose call graph is wanted
      # object:           name of a shared object; the graph has its functions only
      # within:           method or file whose lines are wanted
      # predict:          "PATH:LINE" or name of the method whose removal is predicted
      # label_key:        name of the label whose values are wanted
      # request:          Requests::Row that the segments were narrowed to
      # only_mine:        whether only the application's frames are shown
      # origin:           Origin, which tells the application's frames
      # filters:          Filters whose samples the segments have; those that change stacks are applied to the tree
      # waits:            true: waiting is shown with the rest, however long it is
      Query = Struct.new(:weight, :selection, :threshold, :gc, :blackbox, :callers, :callees, :symbol, :object,
                         :within, :predict, :label_key, :request, :only_mine, :origin, :waits, :filters,
                         keyword_init: true) do
        def initialize(weight: :wall, selection: Selection.all, threshold: 1.0, gc: :happened, blackbox: [],
                       callers: nil, callees: nil, symbol: nil, object: nil, within: nil, predict: nil,
                       label_key: nil, request: nil, only_mine: false, origin: Origin.new, waits: false,
                       filters: Filters.new)
          super
        end
      end

      # @return [Query]
      attr_reader :query
      # @return [Array<Record::Segment>] those of the selected process
      attr_reader :segments

      #: (Array[Record::Segment], ?Query) -> void
      def initialize(segments, query = Query.new)
        @all_segments = segments
        @segments = segments.select { |segment| query.selection.segment?(segment) }
        @query = query
      end

      # The weight that the report is about.
      #: () -> Symbol
      def weight = @query.weight

      # A second weight to show next to the weight; nil if none is useful.
      #: () -> Symbol?
      def second_weight
        unless summary.traced?
          return { wall: :cpu, cpu: :wall, objects: :bytes, bytes: :objects, gc: :objects }[weight]
        end
        return :cpu if weight == :wall && summary.traced_with?("cpu")

        :wall if weight == :cpu
      end

      # Further weights that were counted exactly: of traced calls, or of followed objects.
      #: () -> Array[Symbol]
      def counted
        return [:calls, *%i[objects bytes].select { |name| summary.traced_with?(name.to_s) }] if summary.traced?

        @segments.any?(&:allocation_totals) ? %i[objects bytes] : []
      end

      # The recording's metadata, counters and notes.
      #: () -> Summary
      def summary = @summary ||= Summary.new(@segments)

      # The call tree of the selection, folded as the query says.
      # @raise [UsageError] when the selection or a --blackbox matches nothing
      #: () -> CallTree
      def tree
        @tree ||= begin
          @query.selection.check(@all_segments)
          weights = [weight, second_weight, *counted, *(:wait if summary.traced?)].compact.uniq
          @unfolded = CallTreeBuilder.build(*code, weights: weights)
          fold(@unfolded)
        end
      end

      # The tree's total weight.
      #: () -> Integer
      def total = tree.total(weight)

      # The threshold as a weight; at least 1, because rows without weight are not shown.
      #: () -> Integer
      def least = [(total * @query.threshold / 100r).ceil, 1].max

      # The total of the same part of the recording before filters left samples out.
      #: () -> Integer
      def whole = @whole ||= @query.filters.samples? ? total_of(@segments.map(&:source)) : total

      # The total of other segments, each in place of one that the report was given.
      #: (Array[Record::Segment]) -> Integer
      def total_of(others)
        others = others.select { |other| @query.selection.segment?(other) }
        without = @query.selection.without
        selection = @query.selection.dup
        if without
          selection.without = @segments.zip(others).each_with_object({}.compare_by_identity) do |(segment, other), all|
            all[other] = without[segment] if without[segment]
          end
        end
        CallTreeBuilder.build(others, selection, weights: [weight]).total(weight)
      end

      # The segments with the stacks that the report shows. --only-mine alone leaves them as they are.
      #: () -> Array[Record::Segment]
      def shown_segments = filtered.first

      # The selection of {#shown_segments}.
      #: () -> Selection
      def shown_selection = filtered.last

      # Methods by self weight.
      #: () -> Array[Flat::Row]
      def flat = @flat ||= Flat.rows(tree, weight, also: [second_weight, *counted].compact.uniq)

      # Runs of the garbage collector.
      #: () -> GCTimeline
      def collections = @collections ||= GCTimeline.new(@segments)

      # Costs of lines with the garbage collection that they cause.
      #: () -> GCCost
      def gc_cost = @gc_cost ||= GCCost.new(code.first, weight: weight)

      # Waiting times by method.
      #: () -> WaitingTime
      def waiting = @waiting ||= WaitingTime.new(@segments, @query.selection)

      # A report of running time only, if waiting would hide the rest (WaitingTime#apart?); else the report itself.
      #: () -> Report
      def running
        @running ||= if waiting_apart?
                       part(selection: @query.selection.dup.tap { |selection| selection.state = States::RUNNING })
                     else
                       self
                     end
      end

      # The same report of the application's frames only; nil if all Ruby frames are the application's, or none is,
      # or if a filter chose whose frames are shown.
      #: () -> Report?
      def application_part
        return if @query.only_mine || @query.filters.only

        origins = tree.methods.select(&:ruby?).map { |method| @query.origin.mine?(method) }
        @application_part ||= part(only_mine: true) if origins.uniq.size == 2
      end

      # Whether the recording looks like a server's: requests or jobs are marked, or threads wait most of the time.
      #: () -> bool
      def server? = request_count.to_i.positive? || !running.equal?(self)

      # Whether threads mostly waited in a method. The method's callers then show who waits, not where time goes.
      #: (MethodInfo) -> bool
      def waits?(method)
        row = flat.find { |one| one.method == method }
        return false if row.nil? || !row.own.positive?

        waiting.in(method.name) * 2 > row.own || method.name.match?(WAITS)
      end

      # Path of the application's file with most self weight; nil if no file of the application has any.
      #: () -> String?
      def heaviest_file
        rows = Flat.rows((application_part || self).tree, weight).select { |row| @query.origin.mine?(row.method) }
        files = rows.group_by { |row| row.method.path }
        files.max_by { |path, group| [group.sum(&:own), path] }&.first
      end

      # What removing the query's place would save.
      # @return [GCPrediction, nil] nil if the query has no place
      # @raise [UsageError] when the recording has no such place
      #: () -> GCPrediction?
      def prediction = @query.predict && (@prediction ||= gc_cost.predict(@query.predict))

      # The tree from the roots to the leaves.
      #: () -> Outline::Result
      def top_down = @top_down ||= Outline.top_down(tree, weight, threshold: least, also: (:calls if summary.traced?))

      # Methods with ruby-prof's columns: total, self, wait, child, calls.
      #: () -> Array[CallTimes::Row]
      def call_times = @call_times ||= CallTimes.rows(tree, weight)

      # The tree from the leaves to the roots.
      #: () -> Outline::Result
      def bottom_up = @bottom_up ||= Outline.bottom_up(tree, weight, threshold: least)

      # All threads, also those that the selection leaves out.
      #: () -> Array[Threads::Row]
      def threads
        @threads ||= Threads.rows(@segments, @query.selection.dup.tap { |selection| selection.without = nil })
      end

      # Names of the program's threads that the selection leaves out, each once.
      #: () -> Array[String]
      def left_out
        @segments.flat_map do |segment|
          threads = (@query.selection.without || {}).fetch(segment, []).map { |id| segment.thread(id) }
          threads.reject { |thread| Threads.own?(thread.name) }.map(&:title)
        end.uniq
      end

      # Times by the values of a label, summed over all threads.
      # @raise [UsageError] when the recording has no such label
      #: () -> Labels
      def labels = @labels ||= Labels.new(@segments, @query.selection, name: @query.label_key)

      # Marked requests and jobs that ended, slowest first.
      #: () -> Array[Requests::Row]
      def requests = @requests ||= all_requests.rows(@query.selection)

      # Database queries by line, longest total time first.
      #: () -> Array[Queries::Row]
      def queries = @queries ||= all_queries.rows(@query.selection)

      # Sum of all database queries.
      #: () -> Queries::Total
      def query_total = @query_total ||= all_queries.total(@query.selection)

      # Whether database queries were counted.
      #: () -> bool
      def queries? = all_queries.any?

      # Database queries of one request.
      #: (Requests::Row) -> Array[Queries::Row]
      def queries_of(request) = all_queries.of_request(request)

      # Counters of the VM's caches in requests, jobs and tests.
      #: () -> WorkCounters
      def work_counters = @work_counters ||= WorkCounters.new(@all_segments)

      # Time in methods of database drivers, and the time it is a part of, both in ns.
      # Nil if queries were counted, or if no such time was sampled.
      #: () -> [Integer, Integer]?
      def driver_time
        return if queries?

        @driver_time ||= all_queries.drivers(@query.selection, origin: @query.origin)
        @driver_time if @driver_time.first.positive?
      end

      # Tests, slowest first.
      #: () -> Array[Tests::Row]
      def tests = @tests ||= Tests.new(@all_segments).rows(@query.selection)

      # Number of all requests and jobs of the selected process and labels.
      # Includes those that were not recorded one by one.
      # Nil for the selection of a thread, because requests are not counted by thread.
      #: () -> Integer?
      def request_count = all_requests.count(@query.selection)

      # Lines. With the query's `within`, those of the file or method in the file's order; else the heaviest first.
      #: () -> Array[Lines::Row]
      def lines
        @lines ||= begin
          rows = Lines.rows(tree, weight)
          @query.within ? within(rows) : rows
        end
      end

      # @return [Array(Array<MethodInfo>, Neighbours::Result)] the methods that the name matches, and their callers
      #: () -> [Array[MethodInfo], Neighbours::Result]
      def callers = neighbours(:callers, @query.callers)

      # @return [Array(Array<MethodInfo>, Neighbours::Result)] the methods that the name matches, and their callees
      #: () -> [Array[MethodInfo], Neighbours::Result]
      def callees = neighbours(:callees, @query.callees)

      # Symbols with their callers and callees, those below the threshold left out.
      # @raise [UsageError] when the recording has no such shared object
      #: () -> Graph
      def graph
        @graph ||= begin
          object = @query.object && ObjectMatch.find(tree.methods, @query.object)
          wanted = ->(method) { object.nil? || (method.native? && object.include?(method.path)) }
          Graph.new(tree, weight, least: least, edges: edges, &wanted)
        end
      end

      # The symbol that the query names.
      # @raise [UsageError] when the recording has no such symbol
      #: () -> SymbolGraph
      def symbol_graph
        @symbol_graph ||= SymbolGraph.new(tree, weight, @query.symbol, threshold: @query.threshold, edges: edges)
      end

      # One report for each process, with the same query.
      #: () -> Array[Report]
      def by_process
        groups = @segments.group_by { |segment| segment.header.pid }
        groups.values.map { |segments| Report.new(segments, @query) }
      end

      private

      # Methods that wait, for a Ruby that reports no thread states.
      WAITS = /\A(?:Thread::Mutex\#(?:sleep|lock|synchronize)|Monitor\#synchronize|Kernel[\#.]sleep|
                    Thread\#(?:join|value)|Thread::(?:Sized)?Queue\#pop|Thread::ConditionVariable\#wait|IO\.select|
                    TCPServer\#\w*accept\w*|Process\.wait\w*)\z/x.freeze
      private_constant :WAITS

      def waiting_apart?
        weight == :wall && !@query.waits && @query.selection.state.nil? && @segments.any?(&:sampled?) && waiting.apart?
      end

      # The same report with some values of the query changed.
      def part(**values)
        Report.new(@all_segments, @query.dup.tap { |query| values.each { |name, value| query[name] = value } })
      end

      # Segments and selection without the frames that filters leave out.
      def filtered
        @filtered ||= @query.filters.frame_filter(@segments)&.narrow(@segments, @query.selection) ||
                      [@segments, @query.selection]
      end

      # The same; with only_mine, narrowed to the application's frames.
      def code = @code ||= @query.only_mine ? OnlyMine.new(@query.origin).narrow(*filtered) : filtered

      def all_queries = @all_queries ||= Queries.new(@all_segments)

      def all_requests = @all_requests ||= Requests.new(@all_segments)

      def fold(tree)
        tree = Folding.gc_to_caller(tree) if @query.gc == :caller
        tree = Folding.gc_apart(tree) if @query.gc == :apart
        return tree if @query.blackbox.empty?

        Folding.blackbox(tree, blackboxed(tree))
      end

      def blackboxed(tree)
        @query.blackbox.flat_map { |name| named(tree, name) }
      rescue UsageError => error
        raise UsageError, "#{@query.filters.name(:blackbox)}: #{error.message}"
      end

      def named(tree, name, **words) = MethodMatch.find(tree.methods, name, origin: @query.origin, **words)

      # Edges come from the unfolded tree, because folding moves weights and keeps callers.
      # Callees of folded methods are left out.
      def edges
        return unless summary.traced?

        tree # sets @unfolded
        @edges ||= CallEdges.new(@unfolded, folded: blackboxed(@unfolded))
      end

      def neighbours(kind, name)
        numbers = named(tree, name)
        [tree.methods.values_at(*numbers), Neighbours.public_send(kind, tree, weight, numbers, edges)]
      end

      def within(rows)
        name = @query.within
        found = rows.select { |row| row.path == name || row.path.end_with?("/#{name}") }
        if found.empty?
          numbers = named(tree, name, sought: "file or method")
          wanted = tree.methods.values_at(*numbers)
          found = rows.select { |row| wanted.include?(row.method) }
        end
        found.sort_by { |row| [row.path, row.line] }
      end
    end
  end
end
