# frozen_string_literal: true

require "json"
require "pitwall/analyse/tree/stacks"
require "pitwall/show/export"

module Pitwall
  module Show
    module Export
      # The Firefox profiler's processed profile, version 56 (later ones of the profiler upgrade it): threads with their samples
      # in time order, what they were doing as markers, garbage collection as markers.
      # Format: https://github.com/firefox-devtools/profiler/blob/main/docs-developer/processed-profile-format.md
      #
      # A sample stands at the *beginning* of the time it weighs, as the profiler draws it until the next one; CPU time is
      # told with the sample after it, as the profiler reads that as what passed since the one before.
      class Firefox < Format
        VERSION = 56
        GECKO_VERSION = 31
        # The grey one is what the profiler falls back to, the transparent one is no work.
        CATEGORIES = { "Other" => "grey", "Idle" => "transparent", "GVL wait" => "purple", "Ruby" => "red", "C" => "orange", "GC" => "yellow", "Native" => "brown" }.freeze
        # By a frame's kind.
        KINDS = %w[Ruby C GC Native Other].freeze
        # By what a thread stands for: what is not the code's own doing.
        STANDS = { gvl: "GVL wait", idle: "Idle" }.freeze
        # Field → label and format. (`cause` would be a stack, to the profiler.)
        MARKERS = {
          "state" => { "state" => ["State", "string"], "cpu" => ["CPU time", "nanoseconds"] },
          "labels" => { "labels" => %w[Labels string], "cpu" => ["CPU time", "nanoseconds"] },
          "request" => { "labels" => %w[Labels string] },
          "gc" => { "reason" => %w[Cause string], "major" => ["Major because of", "string"], "runs" => %w[Runs integer], "majors" => ["Major runs", "integer"],
                    "marking" => %w[Marking nanoseconds], "sweeping" => %w[Sweeping nanoseconds], "pauses" => %w[Pauses integer], "longest" => ["Longest pause", "nanoseconds"],
                    "allocated" => ["Objects allocated since the run before", "integer"], "living" => ["Objects left alive", "integer"] }
        }.freeze
        WEIGHTS = { wall: "tracing-ms", cpu: "tracing-ms", captures: "samples" }.freeze
        INTERVAL = 1 # a marker that has a beginning and an end
        private_constant :CATEGORIES, :KINDS, :STANDS, :MARKERS, :WEIGHTS, :INTERVAL, :GECKO_VERSION

        #: () -> bool
        def self.timeline? = true

        # @param weight [Symbol] :wall, :cpu or :captures
        # @param selection [Analyse::Selection]
        #: (Array[Record::Segment], ?Symbol, selection: Analyse::Selection) -> void
        def initialize(segments, weight = :wall, selection:)
          super()
          @segments = segments.select { |segment| selection.segment?(segment) }
          @weight = weight
          @selection = selection
          @origin_ns = @segments.filter_map { |segment| segment.header.started_at_ns }.min.to_i
          @strings = {}
        end

        # @param out [#<<]
        # @raise [BadRecording] when the file was changed since it was read
        #: (untyped) -> void
        def write(out)
          stacks = Analyse::Stacks.new(@segments, @selection)
          out << '{"meta":' << JSON.generate(meta) << ',"libs":[],"threads":['
          first = true
          @segments.each_with_index do |segment, number|
            tracks = tracks(segment, stacks)
            tracks.each do |track|
              out << "," unless first
              first = false
              out << JSON.generate(thread(segment, process(number), track, stacks.tree, collections(segment, track, tracks)))
            end
          end
          out << '],"shared":{"stringArray":' << JSON.generate(@strings.keys) << "}}\n"
        end

        private

        # What a thread did, in the order of time: ns since the segment's start, and at each moment the node and state that
        # begin there. CPU and wall are in ns.
        Track = Struct.new(:info, :times, :nodes, :states, :labels, :wall, :cpu, :captures, :now, :gap)
        private_constant :Track

        def tracks(segment, stacks)
          found = {}
          unit = segment.unit_ns
          segment.each_rows { |rows| rows.each { |thread, state, node, wall, cpu, captures, label| add(found, segment, stacks, [thread, state, node, label], wall * unit, cpu * unit, captures) } }
          segment.open_rows.each { |thread, state, node, wall, cpu, label| add(found, segment, stacks, [thread, state, node, label], wall * unit, cpu * unit, 0) }
          found.values.compact.reject { |track| track.times.empty? }.sort_by { |track| track.info.id }
        end

        def add(found, segment, stacks, (thread, state, node, label), wall, cpu, captures)
          track = found.fetch(thread) { found[thread] = track_of(segment, thread) } or return
          if (@selection.state.nil? || state == @selection.state) && @selection.labels?(segment, label)
            push(track, stacks.node(segment, node), state, label, wall, cpu, captures)
          elsif !track.gap
            end_of(track)
          end
          track.now += wall
        end

        def track_of(segment, thread)
          info = segment.thread(thread)
          Track.new(info, [], [], [], [], [], [], [], info.start_ns, true) if @selection.thread.nil? || @selection.thread?(segment, thread)
        end

        def push(track, node, state, label, wall, cpu, captures)
          track.times << track.now
          track.nodes << node
          track.states << state
          track.labels << label
          track.wall << wall
          track.cpu << cpu
          track.captures << captures
          track.gap = false
        end

        # No stack from here on.
        def end_of(track)
          push(track, nil, nil, nil, 0, 0, 0)
          track.gap = true
        end

        # A process's id; one that was recorded in turns is told apart, as the profiler has one main thread for each.
        def process(number)
          pids = @segments.first(number + 1).map { |segment| segment.header.pid.to_i }
          again = pids.count(pids.last)
          again == 1 ? pids.last.to_s : "#{pids.last}-#{again}"
        end

        def thread(segment, pid, track, tree, collections)
          end_of(track) unless track.gap
          offset = segment.header.started_at_ns.to_i.then { |at| at.zero? ? 0 : at - @origin_ns }
          tables = Tables.new(tree, method(:string))
          samples = samples(track, offset, tables)
          main = track.info.name == "main" || segment.threads.size < 2
          { "processType" => "default", "processName" => segment.header.program.to_s, "processStartupTime" => ms(offset), "processShutdownTime" => ms(offset + segment.stat("elapsed_ns")),
            "registerTime" => ms(offset + track.info.start_ns), "unregisterTime" => ms(offset + track.times.last), "pausedRanges" => [], "showMarkersInTimeline" => true,
            "name" => track.info.title, "isMainThread" => main, "pid" => pid, "tid" => tid(segment, track.info),
            "samples" => samples, "markers" => markers(states(track) + labels(segment, track) + works(segment, track) + collections, offset), **tables.to_h }
        end

        # The kernel's number; threads that took turns on one native thread, or were never seen on any, are told apart.
        def tid(segment, info)
          @natives ||= {}.compare_by_identity
          sharing = @natives[segment] ||= segment.threads.each_value.map(&:native_id).tally
          info.native_id.positive? && sharing[info.native_id] == 1 ? info.native_id : "#{info.native_id}-#{info.id}"
        end

        def samples(track, offset, tables)
          weights = @weight == :captures ? track.captures : track.public_send(@weight).map { |ns| ms(ns) }
          { "stack" => track.nodes.each_index.map { |at| track.nodes[at] && tables.stack(track.nodes[at], stands(track.states[at])) },
            "timeDeltas" => [offset, *track.times].each_cons(2).with_index.map { |(before, time), at| ms(at.zero? ? offset + time : time - before) },
            "weight" => weights, "weightType" => WEIGHTS.fetch(@weight), "threadCPUDelta" => [nil, *track.cpu[0...-1]], "length" => track.nodes.size }
        end

        def markers(rows, offset)
          { "data" => rows.map { |row| row[4] }, "name" => rows.map { |row| string(row[0]) }, "startTime" => rows.map { |row| ms(offset + row[2]) },
            "endTime" => rows.map { |row| ms(offset + row[3]) }, "phase" => rows.map { INTERVAL }, "category" => rows.map { |row| category(row[1]) }, "length" => rows.size }
        end

        # [name, category, from, to, data]
        def states(track)
          stays(track, track.states).reject { |state,| state == Analyse::States::UNKNOWN }.map do |state, from, to, cpu|
            name = Analyse::States.name(state)
            [name, stands(state) || "Other", from, to, { "type" => "state", "state" => name, "cpu" => cpu }]
          end
        end

        def stands(state) = STANDS[Analyse::States[state].wait]

        # What the program said its work was for.
        def labels(segment, track)
          stays(track, track.labels).reject { |label,| segment.labels(label).empty? }.map do |label, from, to, cpu|
            ["labels", "Other", from, to, { "type" => "labels", "labels" => in_words(segment, label), "cpu" => cpu }]
          end
        end

        # Requests and jobs, from their beginning to their end.
        def works(segment, track)
          segment.marks.select { |mark| mark.thread_id == track.info.id && @selection.labels?(segment, mark.label_id) }.map do |mark|
            ["request", "Other", mark.start_ns, mark.end_ns, { "type" => "request", "labels" => in_words(segment, mark.label_id) }]
          end
        end

        def in_words(segment, label) = segment.labels(label).map { |name, value| "#{name}=#{value}" }.join(", ")

        # Neighbours with the same key are one stay: [key, from, to, CPU ns].
        def stays(track, keys)
          found = []
          keys.each_with_index do |key, at|
            next if key.nil?

            if at.positive? && keys[at - 1] == key
              found.last[2] = track.times[at + 1]
              found.last[3] += track.cpu[at]
            else
              found << [key, track.times[at], track.times[at + 1], track.cpu[at]]
            end
          end
          found
        end

        # On the thread that collected; the first one where that has no samples.
        def collections(segment, track, tracks)
          known = tracks.map { |one| one.info.id }
          runs = segment.collections.select { |run| known.include?(run.thread_id) || @selection.thread ? run.thread_id == track.info.id : track.equal?(tracks.first) }
          runs.map do |run|
            data = { "type" => "gc", "reason" => run.cause.to_s, "major" => run.major_cause.to_s, "runs" => run.runs, "majors" => run.majors, "marking" => run.marking_ns,
                     "sweeping" => run.sweeping_ns, "pauses" => run.pauses, "longest" => run.longest_ns, "allocated" => run.allocated, "living" => run.living }
            ["GC", "GC", run.start_ns, run.end_ns, data.reject { |_, value| value.nil? || value == "" }]
          end
        end

        def category(name) = CATEGORIES.keys.index(name)

        def string(text) = @strings[text] ||= @strings.size

        # ns → ms, to the ns
        def ms(ns) = (ns / 1_000_000.0).round(6)

        def meta
          headers = @segments.map(&:header)
          host = headers.first&.host || {}
          { "interval" => ms(headers.first&.interval_ns.to_i), "startTime" => ms(@origin_ns), "processType" => 0, "product" => headers.filter_map(&:program).uniq.join(", "),
            "stackwalk" => 1, "version" => GECKO_VERSION, "preprocessedProfileVersion" => VERSION, "symbolicated" => true, "importedFrom" => "Pitwall",
            "usesOnlyOneStackType" => true, "sourceCodeIsNotOnSearchfox" => true,
            "categories" => CATEGORIES.map { |name, color| { "name" => name, "color" => color, "subcategories" => ["Other"] } }, "markerSchema" => schema,
            "sampleUnits" => { "time" => "ms", "eventDelay" => "ms", "threadCPUDelta" => "ns" }, "extra" => extra(headers),
            "CPUName" => host["cpu"], "logicalCPUs" => host["cores"], "mainMemory" => host["memory_bytes"], "oscpu" => host["kernel"] }.compact
        end

        def schema
          MARKERS.map do |name, fields|
            text = fields.key?("labels") ? "{marker.data.labels}" : "{marker.name}"
            { "name" => name, "display" => %w[marker-chart marker-table timeline-overview], "tooltipLabel" => text, "tableLabel" => text, "chartLabel" => text,
              "fields" => fields.map { |key, (label, format)| { "key" => key, "label" => label, "format" => format } } }
          end
        end

        # How it was recorded, and what got lost: beside the figures there, too.
        def extra(headers)
          entry = ->(label, value) { { "label" => label, "format" => "string", "value" => value } }
          losses = %w[missed_ticks deferred_ticks dropped refused_frames truncated].to_h { |name| [name, @segments.sum { |segment| segment.stat(name) }] }
          entries = [entry.call("Ruby", headers.filter_map { |header| header.ruby["description"] }.grep(String).uniq.join(", ")),
                     entry.call("Samples", "#{@segments.sum { |segment| segment.stat("captures") }}, mode #{headers.filter_map(&:mode).uniq.join(", ")}"),
                     entry.call("Losses", losses.map { |name, count| "#{name} #{count}" }.join(", "))]
          entries.concat(headers.flat_map(&:notes).uniq.map { |note| entry.call("Note", note) })
          [{ "label" => "Pitwall", "entries" => entries }]
        end

        # The stacks, frames and functions of one thread, as the profiler wants them: tables of columns.
        class Tables
          # @param string [#call] text → its number
          def initialize(tree, string)
            @tree = tree
            @string = string
            @stacks = {}
            @frames = {}
            @functions = {}
          end

          # The number of a node's stack; `category` is that of its leaf where the state decides it.
          def stack(node, category = nil)
            @stacks[[node, category]] || begin
              path = []
              parent = @tree.parents[node]
              while parent.positive? && !@stacks.key?([parent, nil])
                path << parent
                parent = @tree.parents[parent]
              end
              path.reverse_each { |above| place(above, nil) }
              place(node, category)
            end
          end

          def to_h
            { "stackTable" => stack_table, "frameTable" => frame_table, "funcTable" => function_table,
              "resourceTable" => { "lib" => [], "name" => [], "host" => [], "type" => [], "length" => 0 },
              "nativeSymbols" => { "libIndex" => [], "address" => [], "name" => [], "functionSize" => [], "length" => 0 } }
          end

          private

          # Its parent's stack is there already.
          def place(node, category)
            @stacks[[node, category]] ||= begin
              @rows ||= []
              method = @tree.node_methods[node]
              category ||= KINDS.fetch(@tree.methods[method].kind, "Other")
              frame = @frames[[method, @tree.lines[node], category]] ||= @frames.size
              parent = @tree.parents[node]
              @rows << [frame, parent.zero? ? nil : @stacks.fetch([parent, nil])]
              @rows.size - 1
            end
          end

          def stack_table
            rows = @rows || []
            { "frame" => rows.map(&:first), "prefix" => rows.map(&:last), "length" => rows.size }
          end

          def frame_table
            size = @frames.size
            keys = @frames.keys
            nothing = Array.new(size)
            { "address" => Array.new(size, -1), "inlineDepth" => Array.new(size, 0), "category" => keys.map { |_, _, category| CATEGORIES.keys.index(category) },
              "subcategory" => Array.new(size, 0), "func" => keys.map { |method, _, _| @functions[method] ||= @functions.size }, "nativeSymbol" => nothing,
              "innerWindowID" => nothing, "line" => keys.map { |_, line, _| line.zero? ? nil : line }, "column" => nothing, "length" => size }
          end

          # After frame_table, which numbers them.
          def function_table
            infos = @functions.keys.map { |method| @tree.methods[method] }
            size = infos.size
            { "name" => infos.map { |info| @string.call(info.name) }, "isJS" => Array.new(size, false), "relevantForJS" => Array.new(size, false), "resource" => Array.new(size, -1),
              "fileName" => infos.map { |info| info.path.empty? ? nil : @string.call(info.path) }, "lineNumber" => infos.map { |info| info.line.zero? ? nil : info.line },
              "columnNumber" => Array.new(size), "length" => size }
          end
        end
        private_constant :Tables
      end
    end
  end
end
