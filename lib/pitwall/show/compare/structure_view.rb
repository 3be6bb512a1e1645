# frozen_string_literal: true

require "pitwall/show/compare/structure_page"
require "pitwall/show/measured/json_values"
require "pitwall/show/terminal/location"
require "pitwall/show/terminal/table"
require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # What differs between the call paths of two sides: what is new first, then what is gone, what is called more often,
    # and one tree with both weights. As text it fits one screen.
    class StructureView
      NEW = 7 # rows of each list, by default
      GONE = 3
      MORE = 3
      TREE = 11
      SCREEN = NEW + GONE + MORE + TREE
      ALL = 1000 # rows of each list in JSON
      MARKS = { new: "+", gone: "−", both: " " }.freeze
      KINDS = { wall: "time", cpu: "CPU time" }.freeze
      # Below this width the tree's head doesn't explain the signs.
      NARROW = 100
      private_constant :NEW, :GONE, :MORE, :TREE, :SCREEN, :ALL, :MARKS, :KINDS, :NARROW

      # @param result [Analyse::StructureChange::Result]
      # @param base [String] name of A
      # @param side [String] name of B
      # @param warnings [Array<String>] shown first
      #: (Analyse::StructureChange::Result, base: String, side: String, ?warnings: Array[String],
      #:  ?location: Location) -> void
      def initialize(result, base:, side:, warnings: [], location: Location.new)
        @result = result
        @base = base
        @side = side
        @warnings = warnings
        @location = location
        @groups = Analyse::StructureChange::Groups.new(result)
      end

      # Why nothing could be compared; nil if it could.
      #: () -> String?
      def reason = @result.reason

      # @param limit [Integer, nil] rows of all lists together; nil: one screen
      #: (width: Integer, palette: untyped, ?limit: Integer?) -> Array[String]
      def lines(width:, palette:, limit: nil)
        @width = width
        @palette = palette
        part = (limit || SCREEN).fdiv(SCREEN)
        most = [NEW, GONE, MORE, TREE].map { |rows| [(rows * part).round, 1].max }
        return opening + wrapped("Structure: not known, #{@result.reason}", :yellow) if @result.reason

        opening + list("Only #{name(@side)} runs", groups(:new), most[0]) +
          list("Only #{name(@base)} runs", groups(:gone), most[1]) +
          list(@result.exact ? "Called more or less often" : "On both sides, beyond noise", more, most[2]) +
          tree(most[3]) + footnotes
      end

      # The object `structure` of a page.
      # @param data [PageData] takes the columns
      #: (PageData) -> Hash[String, untyped]
      def page(data)
        lists = { "new" => groups(:new), "gone" => groups(:gone), "more" => more }
        StructurePage.new(@result, lists.transform_values { |list| list.first(ALL) })
                     .to_h(data, base: @base, side: @side, notes: @result.notes + shared_work) { |item| short(item) }
      end

      # The object `structure`.
      #: () -> Hash[String, untyped]
      def json
        facts = { "base" => @base, "side" => @side, "exact" => @result.exact, "weight" => @result.weight.to_s,
                  "runs" => @result.runs, "reason" => @result.reason, "notes" => @result.notes }
        return facts if @result.reason

        alone = { new: "new", gone: "gone" }.to_h do |presence, key|
          groups = groups(presence)
          [key, groups.first(ALL).map { |group| group_json(group) }]
        end
        JsonValues.clean(
          { **facts, "total_ns" => @result.totals.map(&:first), "change_ns" => @result.change(0),
            "calls" => @result.calls&.map(&:sum), **alone, "more" => more.first(ALL).map { |one| more_json(one) },
            "tree" => rows(ALL).map { |row| row_json(row) } }
        )
      end

      private

      def groups(presence) = (@alone ||= {})[presence] ||= @groups.alone(presence)

      def more = @more ||= @groups.more

      def rows(limit) = Analyse::StructureChange::Outline.rows(@result, limit: limit)

      def name(side) = Text.shorten_middle(side, 40)

      def wrapped(text, style = nil)
        Text.wrap(text, @width).map { |line| style ? @palette.public_send(style, line) : line }
      end

      def opening
        lines = @warnings.flat_map { |text| wrapped("! #{text}", :yellow) }
        return lines if @result.reason

        a, b = @result.totals.map { |totals| time(totals[0]) }
        calls = @result.calls&.map { |list| Units.count(list.sum.round) }
        counted = ", #{calls.join(" → ")} calls" if calls
        means = " (means of #{@result.runs.join(" and ")} runs)" if @result.runs.max > 1
        change = "#{a} → #{b} (#{signed(@result.change(0))})"
        lines += wrapped("#{@side} against #{@base}: #{change}#{counted}#{means}", :bold)
        lines += wrapped(parts) if @result.shared
        return lines if @result.shared

        lines + wrapped("! the sides have no call path in common: are they the same program?", :yellow)
      end

      # What the whole difference is made of.
      def parts
        new, gone = %i[new gone].map { |presence| groups(presence).sum(&:cost) }
        both = @result.change(0) - new - gone
        "only B runs #{signed(new)}, only A runs #{signed(gone)}, what both run #{signed(both)}"
      end

      # Groups and paths of both sides have the same columns.
      def list(title, items, most)
        return [] if items.empty?

        exact = @result.exact
        heads = ["cost", *("calls" if exact), *("" unless exact), title]
        rows = items.first(most).map do |item|
          method = @result.method(item.node)
          Table::Row.new(numbers: [signed(item.cost), exact ? calls(item.calls) : sure(item.doubt)],
                         name: label(item), place: [method.path, 0], style: style(item))
        end
        rest = items.drop(most)
        cost = rest.sum(&:cost)
        note = "#{Units.things(rest.size, "more")[/\A\S+ more/]}, #{signed(cost)} together" if rest.any?
        ["", *table(heads, rows), *(note ? [@palette.dim("  #{note}")] : [])]
      end

      def label(item)
        return @result.method(item.node).name unless item.respond_to?(:owner)

        item.methods > 1 ? "#{item.owner} (#{item.methods} methods)" : item.owner
      end

      def short(item) = item.respond_to?(:owner) ? item.owner : @result.method(item.node).name

      def style(item)
        return if %i[chance small].include?(item.doubt)

        item.cost.positive? ? :red : :green
      end

      def sure(doubt) = doubt == :beyond || doubt == :exact ? "" : "?"

      def calls(calls) = [*calls].map { |count| Units.count(count.round) }.join(" → ")

      def tree(limit)
        shown = rows(limit)
        return [] if shown.empty?

        exact = @result.exact
        leads = leads(shown)
        signs = " (+ only B, − only A#{", ↪ called otherwise" if @result.moved.any?})" if @width >= NARROW
        heads = ["A", "B", "change", *("calls" if exact), *("" unless exact), "both sides as one tree#{signs}"]
        table_rows = shown.each_with_index.map { |row, at| tree_row(row, leads[at], exact) }
        ["", *table(heads, table_rows, giving_way: exact ? [3] : [])]
      end

      def tree_row(row, lead, exact)
        node = row.node
        numbers = [0, 1].map { |side| @result.totals[side][node].zero? ? "" : time(@result.totals[side][node]) }
        numbers << signed(@result.change(node))
        numbers << (exact ? both_calls(node) : sure(@result.verdicts[node]))
        Table::Row.new(numbers: numbers, name: row_name(row), lead: lead,
                       place: row.last ? nil : [@result.method(node).path, 0],
                       style: (:bold if @result.presence(node) != :both))
      end

      def both_calls(node)
        a, b = @result.calls.map { |calls| Units.count(calls[node].round) }
        case @result.presence(node)
        when :new then b
        when :gone then a
        else a == b ? a : "#{a} → #{b}"
        end
      end

      def row_name(row)
        first = @result.method(row.node).name
        text = row.last ? "#{row.frames} frames, #{first} to #{@result.method(row.last).name}" : first
        mark = @result.moved.key?(row.node) ? "↪" : MARKS.fetch(@result.presence(row.node))
        mark == " " ? text : "#{mark} #{text}"
      end

      # One step to the right where ways part.
      def leads(rows)
        indents = []
        rows.map do |row|
          above = row.parent
          indents << (above ? indents[above] + (rows[above].children > 1 ? 1 : 0) : 0)
          indent = indents.last
          indent * 2 > @width / 4 ? "#{"  " * (@width / 8)}…" : "  " * indent
        end
      end

      def table(heads, rows, giving_way: [])
        Table.new(heads: heads, width: @width, palette: @palette, location: @location, giving_way: giving_way)
             .lines(rows)
      end

      def footnotes
        notes = @result.notes + shared_work
        if @result.exact
          notes << "calls are exact; #{KINDS.fetch(@result.weight)} is of traced calls and differs by chance" \
                   "#{", waiting included" if @result.weight == :wall}"
        else
          notes << "? may be chance, or too little to be tested#{"; one run each, so noise between runs is not known" \
                   if @result.runs.max < Analyse::ProfileChange::RUNS}"
        end
        ["", *notes.flat_map { |note| wrapped(note, :dim) }]
      end

      # The largest part that both sides run under different callers.
      def shared_work
        node = @result.moved.keys.max_by { |one| @result.totals[0][one] } or return []
        a, b = @result.totals.map { |totals| time(totals[node]) }
        ["both run #{@result.method(node).name} (#{a} → #{b}) under different callers: " \
         "it is on B's path, and its callers there have A's time of it"]
      end

      def time(ns) = Units.duration(ns.round)

      def signed(ns)
        ns = ns.round
        return "0 s" if ns.zero?

        "#{ns.negative? ? "−" : "+"}#{Units.duration(ns.abs)}"
      end

      def method_json(node)
        method = @result.method(node)
        { "name" => method.name, "file" => method.path }
      end

      def group_json(group)
        { **method_json(group.node), "group" => group.owner, "methods" => group.methods, "cost_ns" => group.cost,
          "calls" => group.calls, "doubt" => group.doubt.to_s }
      end

      def more_json(one)
        { **method_json(one.node), "cost_ns" => one.cost, "calls" => one.calls, "doubt" => one.doubt.to_s }
      end

      def row_json(row)
        node = row.node
        last = row.last && method_json(row.last)
        callers = @result.moved[node]&.map { |number| @result.names[number].name }
        { **method_json(node), "depth" => row.depth, "parent" => row.parent, "frames" => row.frames, "last" => last,
          "presence" => @result.presence(node).to_s, "total_ns" => @result.totals.map { |totals| totals[node] },
          "self_ns" => @result.selfs.map { |selfs| selfs[node] },
          "calls" => @result.calls&.map { |calls| calls[node] },
          "doubt" => @result.verdicts[node].to_s, "callers_in_base" => callers }
      end
    end
  end
end
