# frozen_string_literal: true

require "pitwall/analyse"

module Pitwall
  module Analyse
    # Everything that views of a recording show, worked out when it is first asked for.
    class Report
      # What is asked of a recording. predict: "PATH:LINE" or a method's name; weight: a Symbol; threshold: percent of the total below which trees end;
      # gc: :happened, :apart or :caller; callers, callees: a method's name; blackbox: names; within: a method or file whose
      # lines are wanted; label_key: the label whose values are wanted; request: Requests::Row that the
      # segments were narrowed to.
      Query = Struct.new(:weight, :selection, :threshold, :gc, :blackbox, :callers, :callees, :within, :predict, :label_key, :request, keyword_init: true) do
        def initialize(weight: :wall, selection: Selection.all, threshold: 1.0, gc: :happened, blackbox: [], callers: nil, callees: nil, within: nil, predict: nil, label_key: nil, request: nil)
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
          @unfolded = CallTreeBuilder.build(@segments, @query.selection, weights: [weight, beside, *counted, *(:wait if summary.traced?)].compact.uniq)
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
      def gc_cost = @gc_cost ||= GCCost.new(@segments, weight: weight)

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

      # Names of the threads that are left out, each once.
      #: () -> Array[String]
      def left_out
        @segments.flat_map do |segment|
          (@query.selection.without || {}).fetch(segment, []).map { |id| segment.thread(id) }.map { |info| info.name.empty? ? info.id.to_s : info.name }
        end.uniq
      end

      # Times by the values of a label, those left out of the other views as well.
      # @raise [UsageError] no such label
      #: () -> Labels
      def labels = @labels ||= Labels.new(@segments, @query.selection.dup.tap { |selection| selection.without = nil }, name: @query.label_key)

      # Marked work that ended: the slowest.
      #: () -> Array[Requests::Row]
      def requests = @requests ||= marked.rows(@query.selection)

      # All marked work, told one by one or not.
      #: () -> Integer
      def request_count = marked.count

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
