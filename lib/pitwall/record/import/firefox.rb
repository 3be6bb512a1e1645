# frozen_string_literal: true

require "pitwall/record/import/firefox/tables"
require "pitwall/record/import/format"

module Pitwall
  module Record
    module Import
      # The Firefox profiler's JSON: its own recordings ("Gecko profiles": tables are lists of rows with a schema, times
      # are those of the process), profiles that profiler.firefox.com saved ("processed": tables are lists of columns),
      # and what other tools write in that form: vernier, samply, Pitwall.
      #
      # A sample has a time, and lasts until the thread's next one.
      # Format: https://github.com/firefox-devtools/profiler/blob/main/docs-developer/processed-profile-format.md
      # @api private
      class Firefox < Format
        MS = 1_000_000
        # What `weightType` says → keyword of a row or a site.
        WEIGHTS = { "samples" => :captures, "tracing-ms" => :wall, "bytes" => :bytes }.freeze
        # Units of `threadCPUDelta` that are times.
        CPU = { "ns" => 1, "µs" => 1000, "μs" => 1000, "us" => 1000, "ms" => MS }.freeze
        # Threads, and processes within processes.
        THREADS = 100_000
        PROCESSES = 10
        # Thread states by the category of a sample.
        STATES = { "Idle" => WAITS, "Stalled" => 1, "GVL wait" => 1 }.freeze
        # A time since 1970 in ns that is later than a clock that counts from the machine's start.
        YEAR_2000 = 946_684_800_000_000_000
        private_constant :MS, :WEIGHTS, :CPU, :THREADS, :PROCESSES, :STATES, :YEAR_2000

        class << self
          def title = "Firefox profiler"

          def fits?(source)
            file = source.json
            file.is_a?(Hash) && file["meta"].is_a?(Hash) && file["threads"].is_a?(Array)
          end
        end

        def write(writer)
          file = object(@source.json, "the file")
          threads = threads(file)
          refuse("has more than #{THREADS} threads") if threads.size > THREADS
          threads.group_by { |thread| thread.fetch("pid", 0).to_s }.each { |pid, own| write_process(writer, pid, own) }
          segment(writer).close if threads.empty?
        end

        # The thread whose rows are written: its tables, its samples, and where they go.
        Track = Struct.new(:segment, :number, :tables, :nodes, :states)
        private_constant :Track

        private

        # All threads, also those of processes below, with the metadata of their process.
        def threads(file, depth = 0)
          refuse("has processes nested deeper than #{PROCESSES}") if depth > PROCESSES

          meta = object(file["meta"], "meta")
          shared = file["shared"].is_a?(Hash) ? file["shared"] : {}
          own = list(file["threads"], "threads").map do |thread|
            object(thread, "a thread").merge("meta" => meta, "shared" => shared)
          end
          below = file["processes"].nil? ? [] : list(file["processes"], "processes")
          own + below.flat_map { |process| threads(object(process, "a process"), depth + 1) }
        end

        def write_process(writer, pid, threads)
          meta = threads.first["meta"]
          samples = threads.map { |thread| Tables.columns(thread["samples"], "samples") }
          @times = samples.map { |columns| times(columns) }
          @origin = @times.filter_map(&:first).min || 0
          @sampled = samples.any? { |columns| weight(columns) != :bytes && columns["stack"]&.any? }
          segment = segment(writer, sampled: @sampled, pid: pid[/\A\d{1,18}/]&.to_i, program: program(threads),
                                    interval_ns: interval(meta), started_at_ns: started_at(meta))
          ids = numbers(threads)
          threads.each_with_index { |thread, at| write_thread(segment, ids[at], thread, samples[at], @times[at]) }
          segment.close
        end

        def program(threads)
          meta = threads.first["meta"]
          name = threads.first["processName"] || meta["product"]
          name = threads.find { |thread| thread["isMainThread"] == true }&.fetch("name", nil) if vernier?(meta)
          name if name.is_a?(String) && !name.empty?
        end

        def vernier?(meta) = meta["product"] == "Ruby/Vernier"

        # vernier writes 1 ms whatever the interval was.
        def interval(meta)
          ms = meta["interval"]
          return if vernier?(meta) || !ms.is_a?(Numeric) || (ms.is_a?(Float) && !ms.finite?) || ms <= 0

          ns = (ms.to_r * MS).round
          ns if ns.between?(1, Limits::VALUE - 1)
        end

        # The times of vernier's samples are those of another clock than its start.
        def started_at(meta)
          start = meta["startTime"]
          return unless start.is_a?(Numeric) && (!start.is_a?(Float) || start.finite?)

          ns = (start.to_r * MS).round + (vernier?(meta) ? 0 : @origin)
          ns if ns.between?(YEAR_2000, Limits::VALUE * 2 - 1)
        end

        # Times in ns since the profile's start.
        def times(columns)
          deltas = columns["timeDeltas"]
          times = columns["time"]
          if deltas
            sum = 0
            deltas.map { |delta| time(sum += number(delta, "a time between samples") * MS) }
          elsif times then times.map { |at| time(number(at, "the time of a sample") * MS) }
          else Array.new(columns.fetch("stack", []).size, 0)
          end
        end

        def time(ns)
          return ns.round if ns.abs < Limits::VALUE

          wrong("the time of a sample", "a time within 36 years", (ns / MS).to_f)
        end

        # Numbers of the threads: those of the kernel where they are distinct, else 1, 2, …
        def numbers(threads)
          ids = threads.map { |thread| id(thread["tid"]) }
          ids.all? { |id| id&.positive? } && ids.uniq.size == ids.size ? ids : (1..threads.size).to_a
        end

        def weight(columns)
          type = columns["weightType"]
          return :captures if type.nil? || columns["weight"].nil?

          WEIGHTS.fetch(type) { refuse("has the unit #{type.inspect.slice(0, 40)}, which is none of the format's") }
        end

        def write_thread(segment, number, thread, columns, times)
          start = times.empty? ? 0 : [times.first - @origin, 0].max
          segment.thread(number, name(thread["name"], "a thread's name"), start_ns: start)
          @vernier = vernier?(thread["meta"])
          tables = Tables.new(thread)
          @track = Track.new(segment, number, tables, nodes(segment, tables), states(thread, tables))
          @sites = {}
          write_samples(thread, columns, times)
          close_sites
          write_allocations(tables, thread["jsAllocations"], "jsAllocations", counts: true)
          write_allocations(tables, thread["nativeAllocations"], "nativeAllocations")
        end

        # Node of each stack, made when it is used. A stack comes after the stack that it continues, or before it.
        def nodes(segment, tables)
          ids = Hash.new { |found, frame| found[frame] = frame_of(segment, tables, frame) }
          Hash.new do |found, stack|
            missing = [stack]
            while (prefix = tables.prefix(missing.last)) && !found.key?(prefix)
              missing << prefix
              refuse("is damaged: a stack continues itself") if missing.size > tables.stacks
            end
            missing.reverse_each do |one|
              prefix = tables.prefix(one)
              id, line = ids[tables.frame(one)]
              found[one] = segment.node(prefix ? found[prefix] : 0, id, line)
            end
            found[stack]
          end
        end

        def frame_of(segment, tables, frame)
          name, path, first, line = tables.place(frame)
          path = "" if path == "<cfunc>"
          kind = kind(name, path)
          kind = Frame::NATIVE if tables.native?(frame) && kind == Frame::C
          [segment.frame(name, path, first, kind), kind == Frame::NATIVE ? 0 : line]
        end

        # Thread state of each stack.
        def states(thread, tables)
          categories = list(thread["meta"].fetch("categories", []), "the categories").map do |category|
            object(category, "a category")["name"]
          end
          known = categories.each_with_index.to_h { |name, at| [at, STATES.fetch(name, UNKNOWN)] }
          Hash.new { |found, stack| found[stack] = known.fetch(tables.category(stack), UNKNOWN) }
        end

        def write_samples(thread, columns, times)
          stacks = columns.fetch("stack", [])
          weights = Tables.sized(columns["weight"], stacks.size, "weights")
          kind = weight(columns)
          cpu = cpu(thread, columns, stacks.size)
          last = last_interval(thread)
          stacks.each_with_index do |stack, at|
            lasts = (at + 1 < times.size ? times[at + 1] - times[at] : (stack ? last : 0))
            refuse("is damaged: a sample is earlier than the one before") if lasts.negative?
            add(stack, kind, weights ? weights[at] : 1, lasts, cpu ? cpu[at + 1] || 0 : 0)
          end
        end

        # How long a thread's last sample lasts.
        def last_interval(thread) = interval(thread["meta"]) || 0

        # ns of CPU time since the sample before; nil where the file has none in a unit of time.
        def cpu(thread, columns, size)
          deltas = Tables.sized(columns["threadCPUDelta"], size, "CPU times")
          units = thread["meta"]["sampleUnits"]
          unit = units.is_a?(Hash) ? CPU[units["threadCPUDelta"]] : 1
          deltas&.map { |delta| delta.nil? ? 0 : amount(delta, "a CPU time", unit) } if unit
        end

        def add(stack, kind, weight, lasts, cpu)
          node = stack.nil? ? 0 : @track.nodes[stack]
          return add_site(node, weight) if kind == :bytes
          return if stack.nil? && kind == :wall && lasts.zero? && cpu.zero?

          # A wall time that the file names is the sample's weight. It may differ from how long the sample lasts.
          wall = kind == :wall && stack ? amount(weight, "a weight", MS) : lasts
          captures = kind == :captures && stack ? count(weight, "a weight") : 0
          @track.segment.row(thread: @track.number, node: node, wall: wall, cpu: cpu, captures: captures,
                             state: stack.nil? ? UNKNOWN : @track.states[stack])
        end

        # Counters by node, until the thread ends. vernier's bytes are those of objects that live.
        def add_site(node, weight)
          bytes = amount(weight, "a weight")
          sums = @sites[node] ||= Hash.new(0)
          sums[:count] += 1
          sums[:bytes] += bytes
          return unless @vernier

          sums[:retained] += 1
          sums[:retained_bytes] += bytes
        end

        def close_sites
          @sites.each { |node, sums| @track.segment.site(node: node, **sums) }
        end

        # Objects that were sampled. vernier's weight is a number of objects, the browser's is bytes.
        def write_allocations(tables, table, what, counts: false)
          return if table.nil?

          columns = Tables.columns(table, what)
          weights = columns.fetch("weight", [])
          stacks = Tables.sized(columns["stack"], weights.size, "stacks") || Array.new(weights.size)
          tally(stacks, weights, counts && @vernier).each do |stack, (number, bytes)|
            node = stack.nil? ? 0 : @track.nodes[tables.stack(stack)]
            @track.segment.site(node: node, count: number, bytes: bytes)
          end
        end

        # Memory that was given back has negative weights, which belong to no allocation.
        def tally(stacks, weights, counts)
          stacks.each_with_index.with_object({}) do |(stack, at), sums|
            next if weights[at].is_a?(Numeric) && weights[at].negative?

            weight = amount(weights[at], "the weight of an allocation")
            sum = sums[stack] ||= [0, 0]
            sum[0] += counts ? weight : 1
            sum[1] += counts ? 0 : weight
          end
        end
      end
      private_constant :Firefox
    end
  end
end
