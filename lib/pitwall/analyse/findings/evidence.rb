# frozen_string_literal: true

require "pitwall/analyse/tree/method_info"
require "pitwall/analyse/recording/only_mine"
require "pitwall/analyse/recording/origin"
require "pitwall/analyse/requests/queries"
require "pitwall/analyse/recording/selection"
require "pitwall/analyse/requests/server"
require "pitwall/analyse/threads/states"
require "pitwall/analyse/requests/tests"
require "pitwall/analyse/findings/finding"
require "pitwall/analyse/findings/waiting_calls"
require "pitwall/analyse/threads/waits"
require "pitwall/record/frame"

module Pitwall
  module Analyse
    module Findings
      # What rules look at: a recording's time by line of the application's code. Time of other code, of C functions
      # and of garbage collection counts for the application's line that called it. Read once; the rules only compare.
      class Evidence
        # A line of the application. method: its MethodInfo; cpu, wall in ns, wall only of what ran; gc: CPU time in
        # collections; loading: CPU time while files were loaded; below: what it called, name → CPU ns; inner: where time ended, name → CPU ns; features: path of
        # what it loaded → ns that ran.
        Line = Struct.new(:path, :line, :method, :cpu, :wall, :gc, :loading, :below, :inner, :features) do
          #: () -> [String, Integer, String]
          def place = [path, line, method.name]
        end
        # A wait: name is the method that waits, a C function as a rule; path is "" where no code of the application
        # called it; thread: whose it is.
        Wait = Struct.new(:name, :path, :line, :method, :wall, :thread)
        # The code between taking a lock and giving it back: where it is taken; lines: [path, line, method] → ns.
        Held = Struct.new(:path, :line, :method, :wall, :lines)

        LOADS = ["Kernel#require", "Kernel.require", "Kernel#require_relative", "Kernel#load", "Kernel.load",
                 "Bundler.require", "Bundler::Runtime#require"].freeze
        # How a file's own code is called.
        FILE = /\A<(?:top \(required\)|main|compiled)>/.freeze
        # What runs the program itself, not a part of it: a gem's executable does, which `load`s the real one.
        STARTS = { "Kernel#load" => :program, "Kernel.load" => :program, "Gem.activate_and_load_bin_path" => :always,
                   "Bundler::CLI::Exec#kernel_load" => :always }.freeze
        # A file's own code, and what it calls, is loading: reading a table, defining methods. What is called further
        # down from it is work: `require "rails/commands"` runs the whole command.
        LOADING_DEPTH = 8
        private_constant :LOADS, :FILE, :STARTS, :LOADING_DEPTH

        # @return [Array<Record::Segment>]
        attr_reader :segments
        # @return [Selection]
        attr_reader :selection
        # @return [Integer] ns: CPU time; wall time without what threads waited for work; wall time of what ran; the
        #   part of that in which files were loaded
        attr_reader :cpu, :work, :running, :loading
        # @return [Array<Line>]
        attr_reader :lines
        # @return [Array<Wait>] none of them for work
        attr_reader :waits
        # @return [Array<Held>]
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

        # ns that a thread lived without what it waited for work.
        #: (untyped) -> Integer
        def work_of(thread) = @thread_work[thread]

        # Path, line and method of the application's code above a node; nil where there is none.
        #: (Record::Segment, Integer) -> [String, Integer, MethodInfo]?
        def place(segment, node)
          code = code(segment)
          home = code.homes[node]
          code.places.fetch(home) { code.places[home] = place_of(segment, home) }
        end

        # Was a node's code run while a file was loaded?
        #: (Record::Segment, Integer) -> bool
        def loading?(segment, node) = !code(segment).loads[node].nil?

        # A finding at a place.
        # @param place [Array(String, Integer, String)] path, line and method
        # @param whole [Integer] what amount is a part of
        # @param impact [Float] for the order; by default the part of the time that is no waiting for work
        #: (Symbol, [String, Integer, String], Integer, whole: Integer, **untyped) -> Finding
        def finding(kind, place, amount, whole:, impact: amount.fdiv([work, 1].max), **parts)
          path, line, method = place
          Finding.new(kind: kind, share: amount.fdiv([whole, 1].max), amount: amount, path: path, line: line,
                      method: method, proof: proof, impact: impact, **parts)
        end

        # Marked work.
        #: () -> Requests
        def requests = @requests ||= Requests.new(@segments)

        # Labels of the work that ended.
        #: () -> Array[Hash[String, String]]
        def work_labels = @segments.flat_map { |segment| Queries.works(segment).map { |work| segment.labels(work.label_id) } }

        # Whether states of threads are known.
        #: () -> bool
        def states? = @segments.any? { |segment| segment.header.thread_states? }

        # Does the program serve, so that it can't be run twice to its end? A test suite ends by itself.
        #: () -> bool
        def server?
          return @server if defined?(@server)

          @server = (marked? || Server.runs?(@segments)) && @segments.none? { |segment| tests?(segment) }
        end

        # Did the program say which work was a request, a job or a test?
        #: () -> bool
        def marked? = @segments.any? { |segment| segment.works.any? || segment.marks.any? }

        # Does it serve, and did it do so? Then its boot is no part of what is asked.
        #: () -> bool
        def served? = server? && @cpu - @loading_cpu >= LEAST_NS

        # ns of CPU time that lines are heavy in: without the boot of a server.
        #: () -> Integer
        def work_cpu = served? ? @cpu - @loading_cpu : @cpu

        # ns of wall time that ran, and of collections in it, that are the boot of a server that has served.
        #: () -> [Integer, Integer]
        def boot = served? ? [@loading, @loading_gc] : [0, 0]

        # Is a line's time the boot of a server?
        #: (Line) -> bool
        def boot?(line) = served? && line.loading * 2 > line.cpu

        # :recording for a server, :command for what ends by itself.
        #: () -> Symbol
        def proof = server? ? :recording : :command

        # Of the selection.
        #: (Record::Segment, Record::Mark) -> bool
        def mark?(segment, mark) = @selection.labels?(segment, mark.label_id)

        private

        # A part that was cut out (--request) has its mark only.
        def tests?(segment) = segment.tests.any? || segment.marks.any? { |mark| segment.labels(mark.label_id).key?(Tests::LABEL) }

        # By node: homes: the application's node; below: the first other frame under that; features: path of the file
        # that other code loads; loads: the load above that it is a part of; locks: the innermost frame above that took
        # a lock; places: of the application's nodes, as #place gives them.
        Code = Struct.new(:homes, :below, :features, :loads, :locks, :places)
        # Of a frame: file: path of the file whose own code it is; load: does it load a file; lock: does it take a lock;
        # starts: does it load what the program itself is (:always, or :program: where the program's own file calls it);
        # method: is it one, of Ruby code.
        Traits = Struct.new(:file, :load, :lock, :starts, :method)
        private_constant :Code, :Traits

        def place_of(segment, home)
          return if home.zero? || home == segment.parents.size

          frame = segment.frame(home)
          return if frame.kind != Record::Frame::RUBY

          [frame.path, segment.lines[home], MethodInfo.new(frame.name, frame.path, frame.first_line, frame.kind)]
        end

        def code(segment) = @codes[segment] ||= walk(segment)

        def walk(segment)
          nobody = segment.parents.size
          homes = without_collection(segment, OnlyMine.new(@origin).targets(segment, other: nobody))
          code = Code.new(homes, [nil], [nil], [nil], [nil], {})
          traits = Hash.new { |known, id| known[id] = traits(segment.frames[id]) }
          parents = segment.parents
          depth = [0] # of methods called by a file's own code
          program = [true] # is it the program's own file, or what runs that?
          starters = {} # lines that do nothing but run it: nobody's
          (1...parents.size).each do |node|
            above = parents[node]
            frame = traits[segment.node_frames[node]]
            starts = frame.starts == :always || (program[above] && frame.starts == :program)
            program << (starts || (program[above] && !frame.file.nil?))
            starters[homes[node]] = true if starts
            homes[node] = nobody if starters[homes[node]]
            depth << (frame.file || frame.load ? 0 : depth[above] + (frame.method ? 1 : 0))
            mine = homes[node] == node
            code.below << (mine ? nil : code.below[above] || node)
            code.features << (mine ? nil : code.features[above] || frame.file)
            code.loads << (depth[node] > LOADING_DEPTH ? nil : code.loads[above] || (frame.load && !program[node] ? node : nil))
            code.locks << (frame.lock ? node : code.locks[above])
          end
          code
        end

        def traits(frame)
          return Traits.new if frame.nil?

          name = MethodInfo.around(frame.name)
          Traits.new(frame.name.match?(FILE) ? frame.path : nil, LOADS.include?(name), WaitingCalls.lock?(name), STARTS[name],
                     frame.kind == Record::Frame::RUBY && name == frame.name)
        end

        # A collection is no code: it belongs to the line that it interrupted.
        def without_collection(segment, homes)
          gc = segment.frames.select { |_, frame| frame.kind == Record::Frame::GC }
          return homes if gc.empty?

          (1...segment.parents.size).each do |node|
            homes[node] = homes[segment.parents[node]] if gc.key?(segment.node_frames[node])
          end
          homes
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
            standing = States[tally.state].stands || (told_nothing?(tally) && waits?(segment, node, wall, cpu))
            if standing && waits.for_work?(node, main: main)
              @cpu += cpu
              next
            end
            @thread_work[thread] += wall
            standing ? add_standing(segment, tally, node, wall, thread) : add_running(segment, node, wall, cpu)
            @cpu += cpu if standing
            @work += wall if standing
            hold(segment, node, wall)
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
          # Calls have no lines: their methods stand apart.
          line = @by_line[place[1].zero? ? place : place.first(2)] ||= Line.new(*place, 0, 0, 0, 0, Hash.new(0), Hash.new(0), Hash.new(0))
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

        def told_nothing?(tally) = tally.state == States::UNKNOWN

        # Where no states are told, a thread that has no core looks as one that waits: only calls known to wait count.
        def waits?(segment, node, wall, cpu) = cpu * 10 < wall && WaitingCalls.any?(MethodInfo.around(segment.frame(node).name))

        # Waiting for the GVL is waiting for what runs.
        def add_standing(segment, tally, node, wall, thread)
          return if States[tally.state].stands == :gvl

          name = MethodInfo.around(segment.frame(node).name)
          place = place(segment, node) || ["", 0, nil]
          wait = @by_wait[[name, *place.first(2), thread]] ||= Wait.new(name, *place, 0, thread)
          wait.wall += wall
        end

        # Not what waits for the lock itself, nor what gave it back to wait for a condition.
        def hold(segment, node, wall)
          lock = code(segment).locks[node]
          return if lock.nil? || lock == node || WaitingCalls.gives_back?(MethodInfo.around(segment.frame(node).name))

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
