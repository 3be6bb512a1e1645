# frozen_string_literal: true

require "pitwall/analyse/recording/method_info"
require "pitwall/analyse/recording/only_mine"
require "pitwall/analyse/recording/origin"
require "pitwall/analyse/requests/queries"
require "pitwall/analyse/recording/selection"
require "pitwall/analyse/requests/server"
require "pitwall/analyse/recording/states"
require "pitwall/analyse/requests/tests"
require "pitwall/analyse/findings/finding"
require "pitwall/analyse/findings/waiting_calls"
require "pitwall/analyse/threads/waits"
require "pitwall/record/frame"

module Pitwall
  module Analyse
    module Findings
      # The facts that rules need: a recording's times by line of the application's code. Time of other code, of C
      # functions and of garbage collection counts for the application's line that called it.
      # The recording is read once; rules only compare these facts.
      class Evidence
        # A line of the application. Times in ns, without waiting.
        #
        # method:   MethodInfo
        # cpu, wall: time with all callees
        # gc:       CPU time of garbage collection
        # loading:  CPU time while files were loaded
        # below:    called methods: name → CPU ns
        # inner:    leaves: name → CPU ns
        # features: path of a loaded file → wall ns
        Line = Struct.new(:path, :line, :method, :cpu, :wall, :gc, :loading, :below, :inner, :features) do
          # Path, line and the method's name.
          #: () -> [String, Integer, String]
          def place = [path, line, method.name]
        end
        # A wait. name: the waiting method, usually a C function. path: "" if no code of the application called it.
        # wall: ns. thread: the waiting thread.
        Wait = Struct.new(:name, :path, :line, :method, :wall, :thread)
        # Code that runs under a lock. path, line, method: where the lock is taken. wall: ns.
        # lines: [path, line, method] → ns.
        Held = Struct.new(:path, :line, :method, :wall, :lines)

        LOADS = ["Kernel#require", "Kernel.require", "Kernel#require_relative", "Kernel#load", "Kernel.load",
                 "Bundler.require", "Bundler::Runtime#require"].freeze
        # Names of frames that are a file's own code.
        FILE = /\A<(?:top \(required\)|main|compiled)>/.freeze
        # Methods that load the program itself. A gem's executable does, with `load` of the real one.
        STARTS = { "Kernel#load" => :program, "Kernel.load" => :program, "Gem.activate_and_load_bin_path" => :always,
                   "Bundler::CLI::Exec#kernel_load" => :always }.freeze
        # A file's own code and its callees down to this depth count as loading: reading a table, defining methods.
        # Deeper callees are work: `require "rails/commands"` runs the whole command.
        LOADING_DEPTH = 8
        private_constant :LOADS, :FILE, :STARTS, :LOADING_DEPTH

        # @return [Array<Record::Segment>]
        attr_reader :segments
        # @return [Selection]
        attr_reader :selection
        # @return [Integer] ns. cpu: CPU time. work: wall time without waiting for work. running: wall time without
        #   waiting. loading: the part of running in which files were loaded
        attr_reader :cpu, :work, :running, :loading
        # @return [Array<Line>]
        attr_reader :lines
        # @return [Array<Wait>] waits within work, without waits for work
        attr_reader :waits
        # @return [Array<Held>] code that runs under locks
        attr_reader :held

        #: (Array[Record::Segment], selection: Selection, origin: Origin) -> void
        def initialize(segments, selection:, origin:)
          @segments = segments.select { |segment| selection.segment?(segment) }
          @selection = selection
          @origin = origin
          @cpu = @work = @running = @loading = @loading_cpu = @loading_gc = 0
          @by_line = {}
          @by_wait = {}
          @by_lock = {}
          @thread_work = Hash.new(0)
          @codes = {}.compare_by_identity
          @segments.each { |segment| read(segment) }
          @lines = @by_line.values
          @waits = @by_wait.values
          @held = @by_lock.values
        end

        # Wall time of a thread without waiting for work, in ns.
        #: (untyped) -> Integer
        def work_of(thread) = @thread_work[thread]

        # Path, line and method of the application's code at or above a node; nil if there is none.
        #: (Record::Segment, Integer) -> [String, Integer, MethodInfo]?
        def place(segment, node)
          code = code(segment)
          owner = code.owners[node]
          code.places.fetch(owner) { code.places[owner] = place_of(segment, owner) }
        end

        # Whether a node's code ran while a file was loaded.
        #: (Record::Segment, Integer) -> bool
        def loading?(segment, node) = !code(segment).loads[node].nil?

        # A finding at a place.
        # @param place [Array(String, Integer, String)] path, line and method
        # @param whole [Integer] total that the amount is a part of
        # @param impact [Float] for sorting; by default the amount as a share of `work`
        #: (Symbol, [String, Integer, String], Integer, whole: Integer, **untyped) -> Finding
        def finding(kind, place, amount, whole:, impact: amount.fdiv([work, 1].max), **parts)
          path, line, method = place
          Finding.new(kind: kind, share: amount.fdiv([whole, 1].max), amount: amount, path: path, line: line,
                      method: method, proof: proof, impact: impact, **parts)
        end

        # Marked requests and jobs.
        #: () -> Requests
        def requests = @requests ||= Requests.new(@segments)

        # Label sets of the requests and jobs that ended.
        #: () -> Array[Hash[String, String]]
        def work_labels
          @segments.flat_map { |segment| Queries.works(segment).map { |work| segment.labels(work.label_id) } }
        end

        # Whether states of threads were recorded.
        #: () -> bool
        def states? = @segments.any? { |segment| segment.header.thread_states? }

        # Whether the program is a server, which does not end by itself. A test suite is none.
        #: () -> bool
        def server?
          return @server if defined?(@server)

          @server = (marked? || Server.runs?(@segments)) && @segments.none? { |segment| tests?(segment) }
        end

        # Whether the program marked requests, jobs or tests.
        #: () -> bool
        def marked? = @segments.any? { |segment| segment.works.any? || segment.marks.any? }

        # Whether the program is a server that did work after its boot. Its boot is then not of interest.
        #: () -> bool
        def served? = server? && @cpu - @loading_cpu >= LEAST_NS

        # CPU time in ns that heavy lines are compared with; without the boot of a server that did work.
        #: () -> Integer
        def work_cpu = served? ? @cpu - @loading_cpu : @cpu

        # Boot of a server that did work: running wall time, and wall time of its garbage collection, in ns;
        # else 0 and 0.
        #: () -> [Integer, Integer]
        def boot = served? ? [@loading, @loading_gc] : [0, 0]

        # Whether most of a line's time is the boot of a server that did work.
        #: (Line) -> bool
        def boot?(line) = served? && line.loading * 2 > line.cpu

        # How to prove an improvement: :recording for a server, :command for a program that ends by itself.
        #: () -> Symbol
        def proof = server? ? :recording : :command

        # Whether a mark's labels are selected.
        #: (Record::Segment, Record::Mark) -> bool
        def mark?(segment, mark) = @selection.labels?(segment, mark.label_id)

        private

        # A segment narrowed to one request (--request) has marks only.
        def tests?(segment)
          segment.tests.any? || segment.marks.any? { |mark| segment.labels(mark.label_id).key?(Tests::LABEL) }
        end

        # Values by node.
        #
        # owners:   the application's node that the node's time counts for
        # below:    the first other frame below the owner
        # features: path of the file that other code loads
        # loads:    the outermost load that the node is a part of
        # locks:    the innermost frame at or above the node that takes a lock
        # places:   results of #place by owner
        Code = Struct.new(:owners, :below, :features, :loads, :locks, :places)
        # Properties of a frame.
        #
        # file:   path of the file whose own code it is
        # load:   whether it loads a file
        # lock:   whether it takes a lock
        # starts: whether it loads the program itself: :always, or :program if the program's own file calls it
        # method: whether it is a method in Ruby, not a block
        Traits = Struct.new(:file, :load, :lock, :starts, :method)
        private_constant :Code, :Traits

        def place_of(segment, owner)
          return if owner.zero? || owner == segment.parents.size

          frame = segment.frame(owner)
          return if frame.kind != Record::Frame::RUBY

          [frame.path, segment.lines[owner], MethodInfo.new(frame.name, frame.path, frame.first_line, frame.kind)]
        end

        def code(segment) = @codes[segment] ||= walk(segment)

        def walk(segment)
          other = segment.parents.size
          owners = without_gc(segment, OnlyMine.new(@origin).targets(segment, other: other))
          code = Code.new(owners, [nil], [nil], [nil], [nil], {})
          traits = Hash.new { |known, id| known[id] = traits(segment.frames[id]) }
          parents = segment.parents
          depth = [0] # number of methods since a file's own code
          program = [true] # whether it is the program's own file, or code that loads it
          starters = {} # lines that only load the program; their time counts for no line
          (1...parents.size).each do |node|
            above = parents[node]
            frame = traits[segment.node_frames[node]]
            starts = frame.starts == :always || (program[above] && frame.starts == :program)
            program << (starts || (program[above] && !frame.file.nil?))
            starters[owners[node]] = true if starts
            owners[node] = other if starters[owners[node]]
            depth << (frame.file || frame.load ? 0 : depth[above] + (frame.method ? 1 : 0))
            own = owners[node] == node
            code.below << (own ? nil : code.below[above] || node)
            code.features << (own ? nil : code.features[above] || frame.file)
            load = code.loads[above] || (frame.load && !program[node] ? node : nil)
            code.loads << (depth[node] > LOADING_DEPTH ? nil : load)
            code.locks << (frame.lock ? node : code.locks[above])
          end
          code
        end

        def traits(frame)
          return Traits.new if frame.nil?

          name = MethodInfo.around(frame.name)
          Traits.new(frame.name.match?(FILE) ? frame.path : nil, LOADS.include?(name), WaitingCalls.lock?(name),
                     STARTS[name], frame.kind == Record::Frame::RUBY && name == frame.name)
        end

        # Garbage collection counts for the line that it interrupted.
        def without_gc(segment, owners)
          gc = segment.frames.select { |_, frame| frame.kind == Record::Frame::GC }
          return owners if gc.empty?

          (1...segment.parents.size).each do |node|
            owners[node] = owners[segment.parents[node]] if gc.key?(segment.node_frames[node])
          end
          owners
        end

        def read(segment)
          waits = Waits.new(segment)
          segment.tallies.each { |tally| read_tally(segment, tally, waits) if @selection.tally?(segment, tally) }
          return if segment.tallies.any?

          segment.calls.each do |row|
            ns = [row.wall - row.probe, 0].max
            add_running(segment, row.node_id, ns, ns) if @selection.calls?(segment, row.thread_id)
          end
        end

        def read_tally(segment, tally, waits)
          unit = segment.unit_ns
          main = segment.thread(tally.thread_id).native_id == segment.header.pid
          thread = [segment, tally.thread_id]
          tally.each do |node, wall, cpu, _|
            wall *= unit
            cpu *= unit
            waiting = States[tally.state].wait || (unknown_state?(tally) && waits?(segment, node, wall, cpu))
            if waiting && waits.for_work?(node, main: main)
              @cpu += cpu
              next
            end
            @thread_work[thread] += wall
            waiting ? add_waiting(segment, tally, node, wall, thread) : add_running(segment, node, wall, cpu)
            @cpu += cpu if waiting
            @work += wall if waiting
            add_held(segment, node, wall)
          end
        end

        def add_running(segment, node, wall, cpu)
          code = code(segment)
          @cpu += cpu
          @running += wall
          @work += wall
          loads = code.loads[node]
          @loading += wall if loads
          @loading_cpu += cpu if loads
          @loading_gc += wall if loads && segment.frame(node).kind == Record::Frame::GC
          place = place(segment, node) or return
          # Traced calls have no lines, so their key has the method too.
          key = place[1].zero? ? place : place.first(2)
          line = @by_line[key] ||= Line.new(*place, 0, 0, 0, 0, Hash.new(0), Hash.new(0), Hash.new(0))
          line.cpu += cpu
          line.wall += wall
          line.loading += cpu if loads
          inner = segment.frame(node)
          line.gc += cpu if inner.kind == Record::Frame::GC
          below = code.below[node] or return
          line.below[segment.frame(below).name] += cpu
          line.inner[inner.name] += cpu
          line.features[code.features[node]] += wall if code.features[node] && loads
        end

        def unknown_state?(tally) = tally.state == States::UNKNOWN

        # Whether a thread of unknown state waits. It uses little CPU time, but a thread without a core does too.
        # So only calls that are known to wait count.
        def waits?(segment, node, wall, cpu)
          cpu * 10 < wall && WaitingCalls.any?(MethodInfo.around(segment.frame(node).name))
        end

        # Waits for the GVL are left out: the thread waits for code that runs.
        def add_waiting(segment, tally, node, wall, thread)
          return if States[tally.state].wait == :gvl

          name = MethodInfo.around(segment.frame(node).name)
          place = place(segment, node) || ["", 0, nil]
          wait = @by_wait[[name, *place.first(2), thread]] ||= Wait.new(name, *place, 0, thread)
          wait.wall += wall
        end

        # Adds time under a lock. Leaves out waiting for the lock itself, and waiting for a condition, which releases
        # it.
        def add_held(segment, node, wall)
          lock = code(segment).locks[node]
          return if lock.nil? || lock == node || WaitingCalls.releases?(MethodInfo.around(segment.frame(node).name))

          place = place(segment, lock) or return
          held = @by_lock[place.first(2)] ||= Held.new(*place, 0, Hash.new(0))
          held.wall += wall
          inner = place(segment, node)
          held.lines[inner] += wall if inner
        end
      end
    end
  end
end
