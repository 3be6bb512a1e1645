# frozen_string_literal: true

require "pitwall/analyse/syscalls/syscall_patterns"
require "pitwall/analyse/syscalls/path_tree"
require "pitwall/analyse/syscalls/places"
require "pitwall/analyse/syscalls/tally"

module Pitwall
  module Analyse
    # System calls by the pattern that explains them: markers, absorbed calls, the saving of a fix, and the calls left.
    # Reads the calls once, in bounded memory.
    class SyscallReport
      # Results of one pattern.
      #
      # markers, calls: number of markers, and of absorbed calls
      # ns:             time of the calls; 0 if the log has no times
      # explained:      calls of markers of two calls or more; 0 if the pattern has no advice
      # left:           calls that neither this pass nor an earlier one absorbed
      # saved_calls, saved_ns: saving of the advice
      # saves_at_most:  whether the saving is an upper bound
      Pass = Struct.new(:pattern, :markers, :calls, :ns, :explained, :left, :saved_calls, :saved_ns, :saves_at_most,
                        :tally, keyword_init: true) do
        # The pattern's name.
        #: () -> String
        def name = pattern.name

        # Mean calls of a marker; nil without markers.
        #: () -> Float?
        def average = markers.zero? ? nil : calls.fdiv(markers)

        # @return [Array<[Integer, Integer]>] calls of a marker, and number of such markers
        #: () -> Array[[Integer, Integer]]
        def sizes = tally.sizes.sort

        # Markers by common folder or by name, most frequent first.
        #: (Integer) -> Array[Syscalls::PathCounts::Row]
        def groups(limit)
          return tally.paths.groups(limit) if pattern.of_paths?

          tally.paths.by { |path| pattern.label(path) }.first(limit)
        end
      end

      # Calls with one name. explained: calls that a pattern with advice absorbed.
      Row = Struct.new(:name, :calls, :ns, :explained)
      # Calls of one line. pattern: name of the pattern of most of its calls, or nil.
      Line = Struct.new(:path, :line, :calls, :ns, :explained, :pattern, :gem)

      # Most threads that are followed at a time. With more, the thread that was idle longest is ended.
      CHAINS = 256
      private_constant :CHAINS

      # The report of one or more sources.
      # @param sources [Array<#each, #each_syscall>] logs, segments of recordings, or lists of calls
      # @param patterns [SyscallPatterns]
      # @yield [String] each line of the collapsed log
      #: (*untyped, ?patterns: SyscallPatterns?) ?{ (String) -> void } -> SyscallReport
      def self.of(*sources, patterns: nil, &collapsed)
        report = new(patterns || SyscallPatterns.new, collapsed)
        sources.each { |source| report.add(source) }
        report
      end

      # ns: time of all calls. failed: number of failed calls. timed: number of calls with a time.
      attr_reader :patterns, :ns, :failed, :timed

      # Number of calls.
      #: () -> Integer
      def calls = @by_kind.sum

      # @api private
      def initialize(patterns, collapsed)
        @patterns = patterns
        @collapsed = collapsed
        @programs = patterns.map(&:program)
        @kinds = Syscalls::Kinds.new(@programs)
        @tally = Syscalls::Tally.new(patterns, collapsed: collapsed)
        @ns = @failed = @timed = 0
        @by_name = @kinds.by_name
        @by_kind = Array.new(Syscalls::Kinds::LIMIT, 0)
        @ns_by_kind = []
        @nodes = {}
        @segments = []
        @pids = {}
      end

      # Reads a source to its end.
      # @api private
      def add(source)
        @segments << (source.respond_to?(:frame) ? source : nil)
        @tally.segment = @segments.size - 1
        @chains = {}
        @tid = @chain = nil
        if source.respond_to?(:each_syscall) then source.each_syscall { |call| add_call(bytes(call)) }
        elsif @collapsed.nil? && source.respond_to?(:bare?) && source.bare? then add_bare(source)
        else source.each { |call| add_call(call) }
        end
        @chains.each_value(&:finish)
        @chains = nil
      end

      # The sums as plain values, for another process. Only for logs without stacks.
      # @api private
      def part
        kinds = @kinds.names.each_index.select { |kind| @by_kind[kind].positive? }
        sums = kinds.map do |kind|
          [@kinds.names[kind], @by_kind[kind], @ns_by_kind[kind].to_i, @tally.rest_kinds[kind].to_i]
        end
        { kinds: sums, counts: [@ns, @failed, @timed, @tally.rest_ns], pids: @pids.keys, tally: @tally.part }
      end

      # Adds the result of {part} of another process with the same patterns.
      # @api private
      def merge(part)
        part[:kinds].each do |name, calls, ns, rest|
          kind = @kinds.of(Record::Syscall.new(name: name))
          @by_kind[kind] += calls
          @ns_by_kind[kind] = @ns_by_kind[kind].to_i + ns
          @tally.rest_kinds[kind] = @tally.rest_kinds[kind].to_i + rest
        end
        ns, failed, timed, rest_ns = part[:counts]
        @ns += ns
        @failed += failed
        @timed += timed
        part[:pids].each { |pid| @pids[pid] = true }
        @tally.merge(part[:tally], rest_ns)
        self
      end

      # @return [Array<Pass>] in the order of the passes
      #: () -> Array[Pass]
      def passes
        left = calls
        @passes ||= @tally.passes.map do |found|
          explained = found.pattern.explains? ? found.explained : 0
          saved = explained.zero? ? 0 : saving(found)
          left -= found.calls
          Pass.new(pattern: found.pattern, markers: found.markers, calls: found.calls, ns: found.ns,
                   explained: explained, left: left, saved_calls: saved,
                   saved_ns: found.calls.zero? ? 0 : found.ns * saved / found.calls,
                   saves_at_most: saved.positive? && at_most?(found), tally: found)
        end
      end

      # Number of explained calls, of all patterns.
      #: () -> Integer
      def explained = passes.sum(&:explained)

      # Number of all other calls.
      #: () -> Integer
      def unexplained = calls - explained

      # Name of each pattern → number of its markers.
      #: () -> Hash[String, Integer]
      def markers = passes.to_h { |pass| [pass.name, pass.markers] }

      # Whether the log has times of calls.
      #: () -> bool
      def timed? = @timed.positive?

      # Whether calls have stacks.
      #: () -> bool
      def stacks? = !@nodes.empty?

      # Number of processes.
      #: () -> Integer
      def processes = @pids.size

      # Patterns whose advice saves calls, largest saving first.
      #: () -> Array[Pass]
      def findings
        saving = passes.select { |pass| pass.saved_calls.positive? }
        saving.sort_by { |pass| [-pass.saved_calls, -pass.saved_ns, pass.name] }
      end

      # All calls by name, most frequent first. Here, explained calls are all that patterns absorbed.
      #: () -> Array[Row]
      def by_call
        sums = {}
        @by_kind.each_with_index do |calls, kind|
          next if calls.zero?

          row = sums[@kinds.names[kind]] ||= Row.new(@kinds.names[kind], 0, 0, 0)
          row.calls += calls
          row.ns += @ns_by_kind[kind].to_i
          row.explained += calls - @tally.rest_kinds[kind].to_i
        end
        sums.values.sort_by { |row| [-row.calls, row.name] }
      end

      # Calls that no pattern absorbed, by folder or path.
      #: (Integer) -> Array[Syscalls::PathCounts::Row]
      def rest_by_path(limit) = @tally.rest_paths.groups(limit)

      # Calls that no pattern absorbed, by the last component of the path.
      #: (Integer) -> Array[Syscalls::PathCounts::Row]
      def rest_by_name(limit)
        @tally.rest_paths.by { |path| path.end_with?("/") ? path : Syscalls::Scan.name(path) }.first(limit)
      end

      # Whether there were too many paths, so that rare ones count for their folders.
      #: () -> bool
      def folded? = @tally.rest_paths.folded? || @tally.passes.any? { |pass| pass.paths.folded? }

      # All calls by folder and path. Absorbed calls have the path of their marker.
      #: () -> Syscalls::PathTree
      def path_tree
        rows = @tally.rest_paths.rows.map { |row| [row.path, row.calls, row.ns, 0] }
        @tally.passes.each do |pass|
          explains = pass.pattern.explains?
          pass.paths.rows.each { |row| rows << [row.path, row.calls, row.ns, explains ? row.calls : 0] }
        end
        absorbed = @tally.passes.sum { |pass| pass.pattern.explains? ? pass.calls : 0 }
        with = rows.map { |row| row.drop(1) }.transpose.map(&:sum)
        Syscalls::PathTree.new(rows, without: [calls, ns, absorbed].zip(with).map { |whole, part| whole - part.to_i })
      end

      # Yields calls by stack. Yields nothing without stacks.
      # @yield [segment, node, calls, ns, explained] explained: calls that a pattern with advice absorbed
      #: () { (Record::Segment, Integer, Integer, Integer, Integer) -> void } -> void
      def each_node
        explained = Hash.new(0)
        explaining_passes.each { |pass| pass.nodes.each { |key, (calls, _)| explained[key] += calls } }
        @nodes.each do |(segment, node), (calls, ns)|
          yield @segments[segment], node, calls, ns, explained[[segment, node]] if @segments[segment]
        end
      end

      # Lines of Ruby code, most calls first; empty without stacks.
      #: () -> Array[Line]
      def lines
        @lines ||= begin
          found = Hash.new { |rows, key| rows[key] = Line.new(*key, 0, 0, 0, nil, nil) }
          each_place(@nodes) do |place, calls, ns|
            line = found[[place.path, place.line]]
            line.calls += calls
            line.ns += ns
            line.gem = place.gem
          end
          most = {}
          @tally.passes.each do |pass|
            of_pass = Hash.new(0)
            each_place(pass.nodes) { |place, calls, _| of_pass[[place.path, place.line]] += calls }
            of_pass.each do |key, calls|
              found[key].explained += calls if pass.pattern.explains?
              most[key] = [calls, pass.pattern.name] if calls > (most[key]&.first || 0)
            end
          end
          found.each { |key, line| line.pattern = most[key][1] if most[key] && most[key][0] * 2 >= line.calls }
          found.values.sort_by { |line| [-line.calls, -line.ns, line.path, line.line] }
        end
      end

      # Calls by gem, by feature (the file being loaded) or by phase of the start, most calls first;
      # empty without stacks.
      # @param key [Symbol] :gem, :feature or :phase
      #: (Symbol) -> Array[Row]
      def by(key)
        found = Hash.new { |rows, name| rows[name] = Row.new(name, 0, 0, 0) }
        each_place(@nodes) do |place, calls, ns|
          row = found[place[key]]
          row.calls += calls
          row.ns += ns
        end
        explaining_passes.each do |pass|
          each_place(pass.nodes) { |place, calls, _| found[place[key]].explained += calls }
        end
        found.values.sort_by { |row| [-row.calls, row.name] }
      end

      # Calls by gem of their path, most calls first. For logs without stacks.
      #: () -> Array[Row]
      def by_gem_of_path
        found = Hash.new { |rows, name| rows[name] = Row.new(name, 0, 0, 0) }
        @tally.rest_paths.rows.each { |row| count(found[Syscalls::Places.gem(row.path)], row, false) }
        @tally.passes.each do |pass|
          explains = pass.pattern.explains?
          pass.paths.rows.each { |row| count(found[Syscalls::Places.gem(row.path)], row, explains) }
        end
        found.values.sort_by { |row| [-row.calls, row.name] }
      end

      # Lines whose calls a pattern absorbed, most calls first.
      #: (Pass) -> Array[Line]
      def lines_of(pass)
        found = Hash.new { |rows, key| rows[key] = Line.new(*key, 0, 0, 0, pass.name, nil) }
        each_place(pass.tally.nodes) do |place, calls, ns|
          line = found[[place.path, place.line]]
          line.calls += calls
          line.ns += ns
          line.gem = place.gem
        end
        found.values.sort_by { |line| [-line.calls, line.path, line.line] }
      end

      private

      def explaining_passes = @tally.passes.select { |pass| pass.pattern.explains? }

      def saving(found)
        return [found.explained - found.explaining * found.pattern.keeps, 0].max unless found.pattern.once?

        found.paths.rows.sum { |row| row.calls * (row.count - 1) / row.count }
      end

      # Whether the saving is an upper bound. With `once`, each process keeps its first marker of a path, and the paths
      # that a folder replaces are unknown.
      def at_most?(found) = found.pattern.at_most? || (found.pattern.once? && (found.paths.folded? || processes > 1))

      def add_call(call)
        kind = @by_name[call.name]
        kind = @kinds.of(call) unless kind.is_a?(Integer)
        @by_kind[kind] += 1
        if (ns = call.ns)
          @timed += 1
          @ns += ns
          @ns_by_kind[kind] = (@ns_by_kind[kind] || 0) + ns
        end
        errno = call.errno
        @failed += 1 if errno && errno != 0
        add_node(call, ns) if call.node
        switch_thread(call.tid, call.pid) if call.tid != @tid
        @chain.route(call, kind)
      end

      # Adds a log of one thread whose calls have only a name and a path.
      def add_bare(source)
        kinds = {}
        learn = lambda do |name|
          kind = @kinds.of(Record::BareSyscall.new(nil, name))
          # Markers in a log that was collapsed before are not cached.
          kinds[name] = kind unless kind == Syscalls::Kinds::OTHERS || name.start_with?("%")
          kind
        end
        by_kind = @by_kind
        chain = nil
        source.each_bare(kinds, learn) do |kind, call|
          chain ||= switch_thread(0, 0)
          by_kind[kind] += 1
          chain.route(call, kind)
        end
      end

      # The call with its path as bytes. An expression would fail on invalid UTF-8.
      def bytes(call)
        path = call.path
        return call if path.nil? || path.encoding == Encoding::BINARY || path.ascii_only?

        call = call.dup if call.frozen?
        call.path = path.b
        call
      end

      def add_node(call, ns)
        found = @nodes[[@segments.size - 1, call.node]] ||= [0, 0]
        found[0] += 1
        found[1] += ns if ns
      end

      # Continues with a thread's chain. A pattern matches calls of one thread.
      def switch_thread(tid, pid)
        @tid = tid
        @pids[pid] = true if @pids.size < 100_000
        @chain = @chains.delete(tid)
        unless @chain
          @chains.delete(@chains.first[0]).finish if @chains.size >= CHAINS
          @chain = Syscalls::Chain.new(@programs, @kinds, @tally)
        end
        @chains[tid] = @chain
      end

      def each_place(nodes)
        @places ||= @segments.map { |segment| segment && Syscalls::Places.new(segment) }
        nodes.each do |(segment, node), (calls, ns)|
          place = @places[segment]&.[](node) or next
          yield place, calls, ns
        end
      end

      def count(row, found, explained)
        row.calls += found.calls
        row.ns += found.ns
        row.explained += found.calls if explained
      end
    end
  end
end
