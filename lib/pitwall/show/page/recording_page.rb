# frozen_string_literal: true

require "pitwall/analyse/recording/states"
require "pitwall/show/caches/page_part"
require "pitwall/show/gc/view"
require "pitwall/show/profile/header_view"
require "pitwall/show/page/page"
require "pitwall/show/requests/counters_part"
require "pitwall/show/requests/queries_view"
require "pitwall/show/syscalls/page_part"

module Pitwall
  module Show
    # The page of a recording: samples over time, traced calls, objects by place, the garbage collector's runs.
    #
    # Stacks of all processes are one tree (Analyse::CallTree); samples go into the page as they were recorded, so that
    # it can weigh any stretch of time, thread or state itself.
    class RecordingPage
      # Of a site, after path, line, class, type and method.
      SITE_COLUMNS = %i[count old freed total_age min_age max_age slot_bytes bytes retained retained_bytes gc_ns].freeze
      CALL_COLUMNS = %i[calls wall wait cpu objects bytes].freeze
      # Of a run of the garbage collector.
      RUN_COLUMNS = %i[span_ns marking_ns sweeping_ns pauses longest_ns longest_at_ns runs majors allocated].freeze
      # Whose a method is, by number; the number after the last is for what is nobody's.
      ORIGINS = %i[app gems stdlib native].freeze
      private_constant :SITE_COLUMNS, :CALL_COLUMNS, :RUN_COLUMNS, :ORIGINS

      # @param tabs [Array<Hash>] as Views.tabs gives them
      # @param hints [Views::Hints] options that notes suggest
      # @param source [Hash{String => Hash{Integer => String}}] path → line → text, of the lines that are to be shown
      # @param commits [Hash{String => String}] path → commit, of files whose text is not what stands in the file now
      # @param start [Hash{String => untyped}] what the page shows first: "weight", "view", and filters as the page's
      #   address has them
      # @param began_ns [Integer, nil] what moments count from, where that is earlier than these segments' first start
      # @param difference [Object, nil] what a run without Pitwall gave
      # @param findings [Array<Hash>] as FindingWords#to_h gives them
      # @param mine [Analyse::Origin, nil] whose code a method is
      # @param syscalls [SyscallsPart, Hash, nil] system calls, or totals of them
      #: (Array[Record::Segment], tabs: Array[Hash[String, untyped]], hints: untyped, **untyped) -> void
      def initialize(segments, tabs:, hints:, warnings: [], source: {}, commits: {}, base: nil, start: {},
                     difference: nil, syscalls: nil, findings: [], mine: nil, began_ns: nil, after: nil)
        @segments = segments
        @tabs = tabs
        @hints = hints
        @summary = Analyse::Summary.new(segments)
        @warnings = warnings
        @source = source
        @commits = commits
        @base = base
        @start = start
        @difference = difference
        @syscalls = syscalls
        @findings = findings
        @mine = mine || Analyse::Origin.new(base: base)
        @origin = began_ns
        @after = after || Analyse::Caches::After.new
        @shifts = {}.compare_by_identity
        @queries = {}
        @counters = CountersPart.new(segments)
        @strings = { "" => 0 }
      end

      #: () -> String
      def to_s = Page.new(data).to_s

      # @api private
      #: () -> PageData
      def data
        title = @summary.programs.first(3).join(", ")
        @data = PageData.new(title: "#{title.empty? ? "recording" : title} · Pitwall")
        processes = build_tree
        @data.object = { "schema" => "pitwall/page-1", "kind" => "recording", **facts, "tabs" => @tabs,
                         "start" => @start, "base" => @base, "parts" => Application.parts,
                         "findings" => @findings,
                         "methods" => methods, "nodes" => nodes, "processes" => processes, "states" => states,
                         "objects" => objects, "gc" => collections,
                         "tests" => tests, "counters" => @counters.object, "queries" => queries,
                         "growth" => growth, "syscalls" => syscalls,
                         "caches" => caches,
                         "source" => source, "strings" => @strings.keys }
        @data
      end

      private

      def facts
        { "programs" => @summary.programs, "rubies" => @summary.rubies, "elapsed_ns" => @summary.elapsed_ns,
          "cpu_ns" => @summary.stat("process_cpu_ns"),
          "interval_ns" => @summary.intervals_ns.first, "started_at_ns" => origin, "losses" => @summary.losses,
          "own_ns" => @summary.own_ns,
          "head" => head, "warnings" => @warnings, "notes" => @summary.notes,
          "host" => @summary.headers.first&.host || {}, "settings" => @summary.headers.first&.settings || {},
          "version" => VERSION }
      end

      # Not wrapped: the page does that.
      def head
        HeaderView.new(width: 10_000, palette: Plain, hints: @hints).lines(@summary, difference: @difference)
      end

      def origin = @origin ||= @segments.filter_map { |segment| segment.header.started_at_ns }.min

      # One tree of all processes; what each of them weighs refers to its nodes.
      def build_tree
        weights = @segments.any?(&:allocation_totals) ? Analyse::CallTreeBuilder::SITE_WEIGHTS.keys : []
        builder = Analyse::CallTreeBuilder.new(weights)
        idle = Analyse::IdleThreads.find(@segments)
        lanes = Analyse::Threads.lanes(@segments)
        numbers = {}.compare_by_identity
        Analyse::Processes.of(@segments).each_with_index do |parts, number|
          parts.each { |part| numbers[part] = number }
        end
        processes = @segments.map do |segment|
          @shifts[segment] = shift = builder.tree.size - 1
          builder.add(segment, Analyse::Selection.all)
          told = threads(segment, lanes.fetch(segment), idle.fetch(segment, []))
          process(segment, shift, told).merge("number" => numbers.fetch(segment))
        end
        @tree = builder.tree
        processes
      end

      def process(segment, shift, threads)
        start = origin && segment.header.started_at_ns ? segment.header.started_at_ns - origin : 0
        rows = rows(segment)
        { "pid" => segment.header.pid, "program" => segment.header.program, "unit_ns" => segment.unit_ns,
          "start_ns" => start,
          "elapsed_ns" => segment.stat("elapsed_ns"), "shift" => shift, "threads" => threads,
          "states" => segment.header.thread_states?, "folds" => Analyse::NativeFrames.folds?(segment),
          "rows" => rows, "calls" => calls(segment), "labels" => labels(segment) }
      end

      # Number, title and what a thread waits for ("gvl", "idle" or nil) of those that Pitwall knows, and of others that
      # were recorded.
      def states
        known = Analyse::States::ALL.each_index.to_a
        recorded = @segments.flat_map { |segment| segment.tallies.map(&:state) }.uniq.sort
        (known | recorded).map { |state| [state, Analyse::States[state].title, Analyse::States[state].wait] }
      end

      # Sets of labels by number, and the work that was done under them.
      def labels(segment)
        return unless segment.labelled? || segment.marks.any? || segment.query_sums.any?

        sets = segment.label_sets.map { |set| set.to_h.map { |name, value| [string(name), string(value)] } }
        marks = %i[thread_id label_id end_ns duration_ns].to_h do |name|
          [name.to_s, @data.column(segment.marks.map { |mark| mark[name] })]
        end
        { "sets" => sets, "marks" => marks, "works" => segment.works.map(&:to_a), "queries" => queries_of(segment),
          "counters" => @counters.of_process(segment, @data) }
      end

      # Of a process: sums by label set, and parts of the marks by their place in the list.
      def queries_of(segment)
        return if segment.query_sums.empty?

        numbers = Hash.new { |known, id| known[id] = query_number(segment, id) }
        sums = segment.query_sums.map do |sum|
          [sum.label_id, numbers[sum.query_id], sum.works, sum.count, sum.ns, sum.most]
        end
        parts = segment.marks.each_with_index.flat_map do |mark, at|
          parts = segment.query_parts[[mark.thread_id, mark.end_ns]] || []
          parts.map { |part| [at, numbers[part.query_id], part.count, part.ns] }
        end
        { "sums" => columns(%w[set query works count ns most], sums),
          "parts" => columns(%w[mark query count ns], parts) }
      end

      def columns(names, rows)
        names.each_with_index.to_h { |name, at| [name, @data.column(rows.map { |row| row[at] })] }
      end

      # Queries of all processes are one list.
      def query_number(segment, id)
        query = Analyse::Queries.query(segment, id)
        @queries[[query.path, query.line, query.digest, query.kind]] ||= [@queries.size, query]
        @queries[[query.path, query.line, query.digest, query.kind]].first
      end

      # After the processes; nil where nothing was counted.
      def queries
        found = @queries.each_value.map(&:last)
        return if found.empty?

        { "path" => strings(found.map(&:path)), "line" => @data.column(found.map(&:line)),
          "method" => strings(found.map { |query| QueriesView.name(query) }),
          "digest" => strings(found.map(&:digest)), "kind" => @data.column(found.map(&:kind)),
          "meaning" => QueriesView::MEANING }
      end

      # As ObjectGrowthJson has it, with strings by number; nil where it was not recorded.
      def growth
        found = Analyse::ObjectGrowth.new(@segments)
        return unless found.any?

        sites = ObjectGrowthJson.sites(found).map do |site|
          names = %w[path class method].to_h { |name| [name, string(site[name])] }
          site.merge(names, "holders" => site["holders"]&.map { |path| path.map { |step| string(step) } })
        end
        { "judged" => found.judged?, "sites" => sites, "processes" => ObjectGrowthJson.processes(found),
          "losses" => found.losses, "rule" => ObjectGrowthWords::RULE }
      end

      # Members of Analyse::Tests::Row, the name first; nil where no test ran.
      def tests
        rows = Analyse::Tests.new(@segments).rows
        rows.map { |row| [string(row.name), *row.to_a[1, 6], @counters.values(row.counters)] } if rows.any?
      end

      # Of those that only had a request the name: unseen.
      def threads(segment, lanes, idle)
        seen = [*segment.tallies, *segment.calls].map(&:thread_id).uniq
        lanes.keys.map do |id|
          info = segment.thread(id)
          { "id" => id, "lane" => lanes[id], "native_id" => info.native_id, "name" => string(info.name),
            "start_ns" => info.start_ns,
            "idle" => idle.include?(id), "unseen" => !seen.include?(id), "own" => Analyse::Threads.own?(info.name) }
        end
      end

      # As the file has them, chunk by chunk; those that were open at its end come last.
      def rows(segment)
        return if segment.row_count.zero? && segment.open_rows.empty?

        columns = Array.new(7) { "".b }
        segment.each_rows do |rows|
          add_packed(columns, [rows.thread_runs, rows.state_runs, rows.nodes, rows.wall, rows.cpu, rows.capture_runs,
                               rows.label_runs])
        end
        segment.open_rows.each do |thread, state, node, wall, cpu, label|
          add_packed(columns, [[thread, 1], [state, 1], [node], [wall], [cpu], [0, 1], [label.to_i, 1]])
        end
        %w[threads states nodes wall cpu captures labels].zip(columns.map { |packed| @data.packed(packed) }).to_h
      end

      def add_packed(columns, rows) = rows.each_with_index { |values, at| columns[at] << values.pack("w*") }

      # Times without the probes' own cost.
      def calls(segment)
        return if segment.calls.empty?

        table = segment.calls.map do |row|
          wall, cpu = [row.wall, row.cpu].map { |ns| [ns - row.probe, 0].max }
          [row.thread_id, row.node_id, row.calls, wall, row.wait, cpu, row.objects, row.bytes]
        end
        has = %w[cpu objects bytes].select { |name| segment.tracing[name] == true }
        { "count" => table.size, "has" => has, **columns(["threads", "nodes", *CALL_COLUMNS.map(&:to_s)], table) }
      end

      def methods
        found = @tree.methods
        { "name" => strings(found.map(&:name)), "path" => strings(found.map(&:path)),
          "line" => @data.column(found.map(&:line)), "kind" => @data.column(found.map(&:kind)),
          "origin" => @data.column(found.map { |method| ORIGINS.index(@mine.of(method)) || ORIGINS.size }),
          "gem" => strings(found.map { |method| @mine.gem(method) }) }
      end

      # Without the root, which is node 0.
      def nodes
        { "up" => @data.column(@tree.parents.each_with_index.drop(1).map { |parent, node| node - parent }),
          "method" => @data.column(@tree.node_methods.drop(1)), "line" => @data.column(@tree.lines.drop(1)) }
      end

      def objects
        allocations = Analyse::Allocations.new(@segments)
        return unless allocations.any?

        rows = allocations.rows(by: %i[path line class type method])
        columns = { "path" => strings(rows.map(&:path)), "line" => @data.column(rows.map(&:line)),
                    "class" => strings(rows.map { |row| row[:class] }),
                    "type" => strings(rows.map(&:type)), "method" => strings(rows.map { |row| row[:method] }),
                    "special" => @data.column(rows.map { |row| row.special ? 1 : 0 }) }
        SITE_COLUMNS.each { |name| columns[name.to_s] = @data.column(rows.map { |row| row[name] }) }
        { "sites" => columns, "weights" => node_weights, "ends" => allocations.ends?,
          "retained" => allocations.retained?,
          "retained_bytes" => allocations.retained_bytes?, "stacks" => allocations.stacks?,
          "one_in" => allocations.one_in, "looked_at" => allocations.looked_at, "losses" => allocations.losses,
          "gc_ns" => allocations.gc_ns,
          "total" => { "objects" => allocations.objects, "bytes" => allocations.total(:bytes) },
          "model" => AllocationsText::MODEL }
      end

      # Most nodes allocate nothing: the nodes that do, and what.
      def node_weights
        Analyse::CallTreeBuilder::SITE_WEIGHTS.keys.to_h do |weight|
          found = @tree.selfs(weight).each_with_index.reject { |value, _| value.zero? }
          [weight.to_s, { "node" => @data.column(found.map(&:last)), "value" => @data.column(found.map(&:first)) }]
        end
      end

      def collections
        timeline = Analyse::GCTimeline.new(@segments)
        runs = timeline.runs
        return if runs.empty?

        found = runs.map(&:collection)
        processes = @segments.each_with_index.to_h
        columns = { "at_ns" => @data.column(runs.map(&:at_ns)),
                    "process" => @data.column(runs.map { |run| processes.fetch(run.segment) }),
                    "thread" => @data.column(found.map(&:thread_id)),
                    "reason" => strings(found.map { |run| GCView.reason(run) }),
                    "living" => @data.column(found.map { |run| run.living.to_i }) }
        RUN_COLUMNS.each { |name| columns[name.to_s] = @data.column(found.map { |run| run[name] }) }
        { "runs" => columns, "merged" => timeline.merged?, "wall_ns" => timeline.wall_ns }
      end

      # nil where caches were not watched.
      def caches
        found = Analyse::Caches.new(@segments, after: @after)
        CachesPart.new(found).object(origin: origin.to_i, processes: @segments.each_with_index.to_h) if found.any?
      end

      def syscalls = @syscalls.is_a?(SyscallsPart) ? @syscalls.object(@data, shifts: @shifts) : @syscalls

      def source
        @source.map do |path, lines|
          { "path" => string(path), "lines" => lines.keys, "text" => lines.values, "commit" => @commits[path] }
        end
      end

      def strings(texts) = @data.column(texts.map { |text| string(text.to_s) })

      def string(text) = @strings[text] ||= @strings.size
    end
  end
end
