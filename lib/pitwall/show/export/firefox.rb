# frozen_string_literal: true

require "json"
require "pitwall/analyse/tree/stacks"
require "pitwall/show/export"

module Pitwall
  module Show
    module Export
      # The Firefox profiler's processed profile, version 56 (newer profilers upgrade it).
      # The profile has threads with their samples ordered by time. Thread states, labels, requests and garbage
      # collection are markers.
      # Format: https://github.com/firefox-devtools/profiler/blob/main/docs-developer/processed-profile-format.md
      #
      # A sample's time is the *beginning* of the time that the sample weighs: the profiler draws a sample until the
      # next one. A sample's CPU time is written with the next sample: the profiler reads that field as the CPU time
      # since the previous sample.
      class Firefox < Format
        VERSION = 56
        GECKO_VERSION = 31
        # Category → colour. The profiler uses the grey category as default, and draws the transparent one as idle.
        CATEGORIES = { "Other" => "grey", "Idle" => "transparent", "GVL wait" => "purple", "Ruby" => "red",
                       "C" => "orange", "GC" => "yellow", "Native" => "brown" }.freeze
        # Category of a frame, by the frame's kind.
        KINDS = %w[Ruby C GC Native Other].freeze
        # Category of a sample whose thread waits. Other samples have their frame's category.
        STANDS = { gvl: "GVL wait", idle: "Idle" }.freeze
        # Marker → field → label and format. (The profiler would read a field `cause` as a stack.)
        MARKERS = {
          "state" => { "state" => ["State", "string"], "cpu" => ["CPU time", "nanoseconds"] },
          "labels" => { "labels" => %w[Labels string], "cpu" => ["CPU time", "nanoseconds"] },
          "request" => { "labels" => %w[Labels string] },
          "gc" => { "reason" => %w[Cause string], "major" => ["Major because of", "string"],
                    "runs" => %w[Runs integer], "majors" => ["Major runs", "integer"],
                    "marking" => %w[Marking nanoseconds], "sweeping" => %w[Sweeping nanoseconds],
                    "pauses" => %w[Pauses integer], "longest" => ["Longest pause", "nanoseconds"],
                    "allocated" => ["Objects allocated since the run before", "integer"],
                    "living" => ["Objects left alive", "integer"] }
        }.freeze
        WEIGHTS = { wall: "tracing-ms", cpu: "tracing-ms", captures: "samples" }.freeze
        INTERVAL = 1 # a marker that has a beginning and an end
        private_constant :CATEGORIES, :KINDS, :STANDS, :MARKERS, :WEIGHTS, :INTERVAL, :GECKO_VERSION

        #: () -> bool
        def self.timeline? = true

        # @param weight [Symbol] :wall, :cpu or :captures
        # @param selection [Analyse::Selection] the exported threads, states and labels
        #: (Array[Record::Segment], ?Symbol, selection: Analyse::Selection) -> void
        def initialize(segments, weight = :wall, selection:)
          super()
          @segments = segments.select { |segment| selection.segment?(segment) }
          @weight = weight
          @selection = selection
          @origin_ns = @segments.filter_map { |segment| segment.header.started_at_ns }.min.to_i
          @strings = {}
        end

        # Writes the JSON text.
        # @param out [#<<] receives the text
        # @raise [BadRecording] when the recording's file was changed since it was read
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
              collections = collections(segment, track, tracks)
              out << JSON.generate(thread(segment, process(number), track, stacks.tree, collections))
            end
          end
          out << '],"shared":{"stringArray":' << JSON.generate(@strings.keys) << "}}\n"
        end

        private

        # One thread's samples, ordered by time.
        #
        # info:                  Record::Thread
        # times:                 ns since the segment's start
        # nodes, states, labels: the sample's stack, state and labels; nil where the thread has no sample
        # wall, cpu:             the sample's weights in ns
        # captures:              number of captured stacks
        # now:                   end of the last sample, in ns
        # gap:                   whether the last entry has no stack
        Track = Struct.new(:info, :times, :nodes, :states, :labels, :wall, :cpu, :captures, :now, :gap)
        private_constant :Track

        def tracks(segment, stacks)
          found = {}
          unit = segment.unit_ns
          segment.each_rows do |rows|
            rows.each do |thread, state, node, wall, cpu, captures, label|
              add(found, segment, stacks, [thread, state, node, label], wall * unit, cpu * unit, captures)
            end
          end
          segment.open_rows.each do |thread, state, node, wall, cpu, label|
            add(found, segment, stacks, [thread, state, node, label], wall * unit, cpu * unit, 0)
          end
          found.values.compact.reject { |track| track.times.empty? }.sort_by { |track| track.info.id }
        end

        def add(found, segment, stacks, (thread, state, node, label), wall, cpu, captures)
          track = found.fetch(thread) { found[thread] = track_of(segment, thread) } or return
          if node != segment.gap && (@selection.state.nil? || state == @selection.state) &&
             @selection.labels?(segment, label)
            push(track, stacks.node(segment, node), state, label, wall, cpu, captures)
          elsif !track.gap
            add_gap(track)
          end
          track.now += wall
        end

        def track_of(segment, thread)
          info = segment.thread(thread)
          if @selection.thread.nil? || @selection.thread?(segment, thread)
            Track.new(info, [], [], [], [], [], [], [], info.start_ns, true)
          end
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

        # Ends the last sample: the thread has no stack from here on.
        def add_gap(track)
          push(track, nil, nil, nil, 0, 0, 0)
          track.gap = true
        end

        # A process's id. The profiler allows one main thread for each id, so a second segment of the same process gets
        # a suffix: "123-2".
        def process(number)
          pids = @segments.first(number + 1).map { |segment| segment.header.pid.to_i }
          again = pids.count(pids.last)
          again == 1 ? pids.last.to_s : "#{pids.last}-#{again}"
        end

        def thread(segment, pid, track, tree, collections)
          add_gap(track) unless track.gap
          offset = segment.header.started_at_ns.to_i.then { |at| at.zero? ? 0 : at - @origin_ns }
          tables = Tables.new(tree, method(:string))
          samples = samples(track, offset, tables)
          main = track.info.name == "main" || segment.threads.size < 2
          markers = states(track) + labels(segment, track) + requests(segment, track) + collections
          { "processType" => "default", "processName" => segment.header.program.to_s,
            "processStartupTime" => ms(offset), "processShutdownTime" => ms(offset + segment.stat("elapsed_ns")),
            "registerTime" => ms(offset + track.info.start_ns), "unregisterTime" => ms(offset + track.times.last),
            "pausedRanges" => [], "showMarkersInTimeline" => true,
            "name" => track.info.title, "isMainThread" => main, "pid" => pid, "tid" => tid(segment, track.info),
            "samples" => samples, "markers" => markers(markers, offset), **tables.to_h }
        end

        # The kernel's thread id. Ruby threads that share a native thread, or never had one, get a suffix: "1234-2".
        def tid(segment, info)
          @natives ||= {}.compare_by_identity
          sharing = @natives[segment] ||= segment.threads.each_value.map(&:native_id).tally
          info.native_id.positive? && sharing[info.native_id] == 1 ? info.native_id : "#{info.native_id}-#{info.id}"
        end

        def samples(track, offset, tables)
          weights = @weight == :captures ? track.captures : track.public_send(@weight).map { |ns| ms(ns) }
          stacks = track.nodes.zip(track.states).map { |node, state| node && tables.stack(node, stands(state)) }
          deltas = [offset, *track.times].each_cons(2).with_index.map do |(before, time), at|
            ms(at.zero? ? offset + time : time - before)
          end
          { "stack" => stacks, "timeDeltas" => deltas, "weight" => weights, "weightType" => WEIGHTS.fetch(@weight),
            "threadCPUDelta" => [nil, *track.cpu[0...-1]], "length" => track.nodes.size }
        end

        # @param rows [Array] rows of [name, category, from, to, data]; times in ns
        def markers(rows, offset)
          { "data" => rows.map { |row| row[4] }, "name" => rows.map { |row| string(row[0]) },
            "startTime" => rows.map { |row| ms(offset + row[2]) }, "endTime" => rows.map { |row| ms(offset + row[3]) },
            "phase" => rows.map { INTERVAL }, "category" => rows.map { |row| category(row[1]) },
            "length" => rows.size }
        end

        # Markers of the thread's states.
        def states(track)
          known = intervals(track, track.states).reject { |state,| state == Analyse::States::UNKNOWN }
          known.map do |state, from, to, cpu|
            name = Analyse::States.name(state)
            [name, stands(state) || "Other", from, to, { "type" => "state", "state" => name, "cpu" => cpu }]
          end
        end

        def stands(state) = STANDS[Analyse::States[state].wait]

        # Markers of the labels that the program set.
        def labels(segment, track)
          intervals(track, track.labels).reject { |label,| segment.labels(label).empty? }.map do |label, from, to, cpu|
            ["labels", "Other", from, to, { "type" => "labels", "labels" => in_words(segment, label), "cpu" => cpu }]
          end
        end

        # Markers of requests and jobs.
        def requests(segment, track)
          marks = segment.marks.select do |mark|
            mark.thread_id == track.info.id && @selection.labels?(segment, mark.label_id)
          end
          marks.map do |mark|
            data = { "type" => "request", "labels" => in_words(segment, mark.label_id) }
            ["request", "Other", mark.start_ns, mark.end_ns, data]
          end
        end

        def in_words(segment, label) = segment.labels(label).map { |name, value| "#{name}=#{value}" }.join(", ")

        # Consecutive samples with the same key, merged: [key, from ns, to ns, CPU ns].
        def intervals(track, keys)
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

        # Markers of garbage collections, on the thread that collected.
        # If that thread has no samples, the markers are on the first thread.
        def collections(segment, track, tracks)
          known = tracks.map { |one| one.info.id }
          runs = segment.collections.select do |run|
            own = known.include?(run.thread_id) || @selection.thread
            own ? run.thread_id == track.info.id : track.equal?(tracks.first)
          end
          runs.map do |run|
            data = { "type" => "gc", "reason" => run.cause.to_s, "major" => run.major_cause.to_s, "runs" => run.runs,
                     "majors" => run.majors, "marking" => run.marking_ns, "sweeping" => run.sweeping_ns,
                     "pauses" => run.pauses, "longest" => run.longest_ns,
                     "allocated" => run.allocated, "living" => run.living }
            ["GC", "GC", run.start_ns, run.end_ns, data.reject { |_, value| value.nil? || value == "" }]
          end
        end

        def category(name) = CATEGORIES.keys.index(name)

        def string(text) = @strings[text] ||= @strings.size

        # ns → ms, with six decimals
        def ms(ns) = (ns / 1_000_000.0).round(6)

        def meta
          headers = @segments.map(&:header)
          host = headers.first&.host || {}
          categories = CATEGORIES.map do |name, color|
            { "name" => name, "color" => color, "subcategories" => ["Other"] }
          end
          { "interval" => ms(headers.first&.interval_ns.to_i), "startTime" => ms(@origin_ns), "processType" => 0,
            "product" => headers.filter_map(&:program).uniq.join(", "), "stackwalk" => 1, "version" => GECKO_VERSION,
            "preprocessedProfileVersion" => VERSION, "symbolicated" => true, "importedFrom" => "Pitwall",
            "usesOnlyOneStackType" => true, "sourceCodeIsNotOnSearchfox" => true,
            "categories" => categories, "markerSchema" => schema,
            "sampleUnits" => { "time" => "ms", "eventDelay" => "ms", "threadCPUDelta" => "ns" },
            "extra" => extra(headers), "CPUName" => host["cpu"], "logicalCPUs" => host["cores"],
            "mainMemory" => host["memory_bytes"], "oscpu" => host["kernel"] }.compact
        end

        def schema
          MARKERS.map do |name, fields|
            text = fields.key?("labels") ? "{marker.data.labels}" : "{marker.name}"
            { "name" => name, "display" => %w[marker-chart marker-table timeline-overview],
              "tooltipLabel" => text, "tableLabel" => text, "chartLabel" => text,
              "fields" => fields.map { |key, (label, format)| { "key" => key, "label" => label, "format" => format } } }
          end
        end

        # Facts shown in the profiler's information panel: Ruby, sampling mode, losses, notes.
        def extra(headers)
          entry = ->(label, value) { { "label" => label, "format" => "string", "value" => value } }
          losses = %w[missed_ticks deferred_ticks dropped refused_frames truncated].to_h do |name|
            [name, @segments.sum { |segment| segment.stat(name) }]
          end
          rubies = headers.filter_map { |header| header.ruby["description"] }.grep(String).uniq
          captures = @segments.sum { |segment| segment.stat("captures") }
          entries = [entry.call("Ruby", rubies.join(", ")),
                     entry.call("Samples", "#{captures}, mode #{headers.filter_map(&:mode).uniq.join(", ")}"),
                     entry.call("Losses", losses.map { |name, count| "#{name} #{count}" }.join(", "))]
          entries.concat(headers.flat_map(&:notes).uniq.map { |note| entry.call("Note", note) })
          [{ "label" => "Pitwall", "entries" => entries }]
        end

        # The stacks, frames and functions of one thread, as the profiler's tables of columns.
        class Tables
          # @param tree [Analyse::Tree] all stacks
          # @param string [#call] text → its number in the profile's table of strings
          def initialize(tree, string)
            @tree = tree
            @string = string
            @stacks = {}
            @frames = {}
            @functions = {}
          end

          # The number of a node's stack.
          # @param category [String, nil] category of the leaf; nil: the leaf's kind decides
          #: (Integer, ?String?) -> Integer
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

          # The JSON object of all tables.
          #: () -> Hash[String, untyped]
          def to_h
            { "stackTable" => stack_table, "frameTable" => frame_table, "funcTable" => function_table,
              "resourceTable" => { "lib" => [], "name" => [], "host" => [], "type" => [], "length" => 0 },
              "nativeSymbols" => { "libIndex" => [], "address" => [], "name" => [], "functionSize" => [],
                                   "length" => 0 } }
          end

          private

          # Adds a node's stack. The stack of the node's parent must have been added before.
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
            { "address" => Array.new(size, -1), "inlineDepth" => Array.new(size, 0),
              "category" => keys.map { |_, _, category| CATEGORIES.keys.index(category) },
              "subcategory" => Array.new(size, 0),
              "func" => keys.map { |method, _, _| @functions[method] ||= @functions.size }, "nativeSymbol" => nothing,
              "innerWindowID" => nothing, "line" => keys.map { |_, line, _| line.zero? ? nil : line },
              "column" => nothing, "length" => size }
          end

          # Must be called after frame_table, which numbers the functions.
          def function_table
            infos = @functions.keys.map { |method| @tree.methods[method] }
            size = infos.size
            { "name" => infos.map { |info| @string.call(info.name) }, "isJS" => Array.new(size, false),
              "relevantForJS" => Array.new(size, false), "resource" => Array.new(size, -1),
              "fileName" => infos.map { |info| info.path.empty? ? nil : @string.call(info.path) },
              "lineNumber" => infos.map { |info| info.line.zero? ? nil : info.line },
              "columnNumber" => Array.new(size), "length" => size }
          end
        end
        private_constant :Tables
      end
    end
  end
end
