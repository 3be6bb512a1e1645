# frozen_string_literal: true

# The process in which `pitwall bench` and `pitwall compare` measure one case, and the small language of benchmark files.
#
#   ruby child.rb FD list|run FILE|-e [key=value …]
#
# It runs on the Ruby under measurement, which may be any: no other file is loaded, nothing but core Ruby is used, in the syntax
# of 2.7. Answers go to descriptor FD, a line each: see Child. Required by another file (pitwall/ips) it only defines the language
# and the instruments.
#
# Between two readings of a clock nothing of ours allocates, and nothing looks up a constant: a case may just have emptied that
# cache. Integers are counted by succ and added by subtraction: a file may have given Integer a `+` of its own.
module Pitwall
  # What files may call is in doc/measuring.md.
  # @api private
  module Bench
    # A benchmark file asks for what isn't there: one line with the mend.
    Misuse = defined?(Pitwall::UsageError) ? Pitwall::UsageError : Class.new(StandardError)

    class << self
      # Who gets each block of cases: `wants?(index)` before its body runs, `run(job)` after it, `skip(job)` without it.
      attr_accessor :runner

      # Runs the body of one block, `Benchmark.ips` or `Pitwall.bench`, then has its cases listed or measured.
      #: (Job, Proc?) -> Report
      def open(job, body)
        raise Misuse, "#{job.call} needs a block: #{job.call} { |x| x.report(\"label\") { … } }" unless body
        raise Misuse, "#{job.call} inside another block or case: put it after that one" if @open

        @open = true
        job.index = @blocks.to_i
        @blocks = job.index.succ
        return runner.skip(job) unless runner.wants?(job.index)

        body.call(job)
        job.close
        runner.run(job)
      ensure
        @open = false if job.index
      end

      def jit?
        return false unless defined?(RubyVM)

        %i[YJIT ZJIT RJIT MJIT].any? do |name|
          RubyVM.const_defined?(name) && RubyVM.const_get(name).respond_to?(:enabled?) && RubyVM.const_get(name).enabled?
        end
      end
    end

    # One case as a file states it: a Proc or code, and its point in a sweep.
    Case = Struct.new(:job, :label, :body, :params)

    # What a block of cases gives back. Under `pitwall bench` nothing has been measured by then: entries hold ones.
    #
    # entries: an Entry a case · compare!: was it asked for
    Report = Struct.new(:entries, :compare) do
      def data
        entries.map { |entry| { name: entry.label, ips: entry.ips, stddev: entry.ips_sd } }
      end
    end

    # label · ips: iterations a second, median of the rounds · ns: nanoseconds an iteration · spread: half the distance between the
    # quartiles of the rounds, as a share of their median · objects: allocated an iteration · iterations: timed · rounds: how many
    Entry = Struct.new(:label, :ips, :ns, :spread, :objects, :iterations, :rounds) do
      def ips_sd
        ips * spread
      end

      def error_percentage
        spread * 100
      end

      def stats
        Stats.new(ips, ips_sd)
      end
    end
    Stats = Struct.new(:central_tendency, :error)

    # What the block of `Benchmark.ips` gets: the calls of benchmark-ips that files commonly use.
    class Job
      # How long and how: under `pitwall bench` its options decide that.
      SETTINGS = %i[time warmup iterations stats confidence quiet].freeze
      # Accepted so that files run unchanged, and noted.
      WITHOUT_EFFECT = %i[hold! save! json! independence independence! shuffle! suite= format=].freeze

      attr_reader :call, :name, :cases, :flags, :order, :ignored, :settings
      attr_accessor :index # of this block in its file

      def initialize(call, name = "", settings = {})
        @call = call
        @name = name.to_s
        @reports = []
        @flags = []
        @ignored = []
        @settings = {}
        config(settings)
      end

      def config(settings)
        settings.each { |name, value| SETTINGS.include?(name.to_sym) ? @settings[name.to_sym] = value : @ignored |= ["config #{name}"] }
        self
      end

      SETTINGS.each do |name|
        define_method(name) { @settings[name] }
        define_method(:"#{name}=") { |value| @settings[name] = value }
      end

      # A case: a block; in `Benchmark.ips` also a block that takes the number of iterations and loops itself; or code.
      def report(label = "", code = nil, &block)
        body = code || block
        raise Misuse, "#{call}: x.report(#{label.to_s.inspect}) needs a block or a string of code" unless body

        Work.check(body, label.to_s) if body.is_a?(String)
        @reports << [label.to_s, body]
        self
      end
      alias item report

      def compare!(order: :fastest)
        @order = order.to_sym
        @flags |= ["compare", ("baseline" if @order == :baseline)].compact
        self
      end

      def compare?
        @order ? true : false
      end

      def list
        @reports.map(&:first)
      end

      # The file's body has run: settles the cases.
      def close
        @cases = expand
        twice = @cases.map(&:label).tally.find { |_, count| count > 1 }
        raise Misuse, "#{call}: two cases are called #{twice.first.inspect}: give each its own label" if twice
      end

      # Is a block's one argument the number of iterations? Otherwise it is the state.
      def passes_times?
        true
      end

      def before_block; end

      # @return the state that a case is given
      def set_up(_params); end

      def tear_down(_state, _params); end

      def method_missing(name, *)
        refuse(name) unless WITHOUT_EFFECT.include?(name)
        @ignored |= ["x.#{name}"]
        self
      end

      def respond_to_missing?(name, _private)
        WITHOUT_EFFECT.include?(name)
      end

      private

      def refuse(name)
        raise Misuse, "#{call}: x.#{name} is known in Pitwall.bench only: write the block with that" if Sweep.method_defined?(name)

        raise Misuse, "#{call}: x.#{name} is not known here; known are #{known.map { |each| "x.#{each}" }.join(", ")}"
      end

      def known
        %w[report item compare! config]
      end

      def expand
        @reports.map { |label, body| Case.new(self, label, body, {}) }
      end
    end

    # What the block of `Pitwall.bench` gets.
    class Sweep < Job
      GROWTH_NEEDS = 4

      attr_reader :before_block

      def initialize(*)
        super
        @params = {}
      end

      # Every case is measured at each value (an Array or Range is its elements); several params make their product.
      def param(name, *values)
        values = values.first.to_a if values.size == 1 && (values.first.is_a?(Array) || values.first.is_a?(Range))
        name = name.to_sym
        raise Misuse, "x.param #{name.inspect}: a name such as :n" unless Work.local?(name)
        raise Misuse, "x.param #{name.inspect} needs values: x.param :#{name}, 10, 100, 1000" if values.empty?
        raise Misuse, "x.param #{name.inspect} is there twice: give all values at once" if @params.key?(name)

        @params[name] = values.uniq
        self
      end

      # How time grows with this param is the question. Without it: the first numeric one with at least four values.
      def growth(name)
        @growth = name.to_sym
        self
      end

      # Once a process, before the first call; its value is the state that cases get. May take the params.
      def setup(&block)
        @setup = block
        self
      end

      # Before each iteration, outside the clock: what it makes of the state is what that iteration gets.
      def before(&block)
        @before_block = block
        self
      end

      # Once a process, after the last call.
      def after(&block)
        @after = block
        self
      end

      def close
        super
        raise Misuse, "x.growth #{@growth.inspect}: add x.param #{@growth.inspect}, 10, 100, 1000, 10_000" if @growth && !@params.key?(@growth)

        along = @growth || @params.keys.find { |name| @params[name].size >= GROWTH_NEEDS && @params[name].all?(Numeric) }
        @flags |= ["growth", "growth:#{along}"] if along
        @flags |= ["before"] if @before_block
      end

      def passes_times?
        false
      end

      def set_up(params)
        @setup ? invoke(@setup, params, params) : (params unless params.empty?)
      end

      def tear_down(state, params)
        invoke(@after, state, params) if @after
      end

      # A value in a label and in the list: in one piece, and not long.
      def self.show(value)
        text = value.is_a?(String) || value.is_a?(Symbol) || value.is_a?(Numeric) ? value.to_s : value.inspect
        text.tr(",\t\n ", ";___")[0, 40]
      end

      private

      def known
        super | %w[param setup before after growth]
      end

      def expand
        names = @params.keys
        points = names.empty? ? [[]] : @params[names.first].product(*names.drop(1).map { |name| @params[name] })
        @reports.flat_map do |label, body|
          points.map do |values|
            params = names.zip(values).to_h
            Case.new(self, [label, *params.map { |name, value| "#{name}=#{Sweep.show(value)}" }].reject(&:empty?).join(" "), body, params)
          end
        end
      end

      def invoke(block, argument, params)
        words = Work.words(block, params).to_h { |name| [name, params[name]] }
        arguments = Work.positional?(block) ? [argument] : []
        words.empty? ? block.call(*arguments) : block.call(*arguments, **words)
      end
    end

    # A case made ready: its state, and a loop compiled for it alone. A loop that all cases shared would be slower, and the slower
    # the more cases a file has.
    class Work
      # States are made ahead, outside the clock, for so many iterations at most.
      AHEAD = 1000
      POSITIONAL = %i[req opt rest].freeze
      ENTRIES = 150
      private_constant :POSITIONAL

      class << self
        def positional?(block)
          block.parameters.any? { |kind, _| POSITIONAL.include?(kind) }
        end

        # The params that a block takes as keywords.
        def words(block, params)
          asked = block.parameters.select { |kind, _| %i[key keyreq].include?(kind) }
          missing = asked.find { |kind, name| kind == :keyreq && !params.key?(name) }
          raise Misuse, "a block takes #{missing.last}: but there is no x.param :#{missing.last}" if missing

          block.parameters.any? { |kind, _| kind == :keyrest } ? params.keys : params.keys & asked.map(&:last)
        end

        def local?(name)
          name.match?(/\A[a-z_]\w*\z/) && (compile("proc { |#{name}| }", "") ? true : false)
        rescue SyntaxError
          false
        end

        # @raise [SyntaxError] with the label for a file name
        def check(code, label)
          compile("proc { #{code}\n}", label)
        rescue SyntaxError
          RubyVM::InstructionSequence.compile(code, label) if defined?(RubyVM::InstructionSequence) # by itself it gives the right line
          raise
        end

        # In no module, with main as self and no local variables.
        def compile(code, label, line = 1)
          verbose = $VERBOSE
          $VERBOSE = nil
          eval(code, BLANK.call, label, line) # rubocop:disable Security/Eval -- it is what the user gave to be run
        ensure
          $VERBOSE = verbose
        end
      end

      def initialize(kase)
        @job = kase.job
        @body = kase.body
        @params = kase.params
        @before = @job.before_block
        @states = []
        @code = @body.is_a?(String)
        @times = !@code && @job.passes_times? && @body.arity > 0
        @code ? compile_code(kase.label) : compile_loop
        @state = @job.set_up(@params)
        @given = @before ? @states : @state
      end

      # Does the case loop by itself?
      def passes_times?
        @times
      end

      def fresh_states?
        @before ? true : false
      end

      # Makes states for the next run, outside the clock.
      # @return [Integer] for how many of these iterations
      def prepare(times)
        return times unless @before

        times = AHEAD if times > AHEAD
        @filler.fill(times, @states, @state, @params, &@before)
        times
      end

      # So many iterations. Allocates nothing of its own.
      def run(times)
        @code ? @loop.call(times, @given, @params) : @loop.run(times, @given, @params, &@body)
      end

      # @return its value
      def once
        given = @before ? @states[0] : @state
        @code ? @once.call(1, given, @params) : @loop.once(given, @params, &@body)
      end

      # Drops the states of the last iterations.
      def release
        @states.fill(nil) if @before
      end

      # A JIT compiles a loop where it is entered, and only when that has happened some thirty times: enters it often, for
      # nothing. A case that loops by itself is asked for one iteration, as often as a tenth of a second allows.
      # @return [Integer] iterations run
      def prime
        return ENTRIES.times { run(0) } && 0 unless @times

        limit = Process.clock_gettime(Process::CLOCK_MONOTONIC, :millisecond) - -100
        (1..ENTRIES).find do |entry|
          run(1)
          entry == ENTRIES || Process.clock_gettime(Process::CLOCK_MONOTONIC, :millisecond) > limit
        end
      end

      def finish
        release
        @job.tear_down(@state, @params)
      end

      private

      # Four iterations a turn, so that counting them costs a quarter.
      def compile_loop
        locals, given = arguments(@body, @before ? "states[i]" : "state")
        turn = "yield(#{given})\n"
        run = if @times then "yield(times)"
              elsif @before then "i = 0\nwhile i < times\n#{turn}#{count("i")}\nend"
              else "i = 0\nturns = times / 4\nwhile i < turns\n#{turn * 4}#{count("i")}\nend\n" \
                   "i = 0\nturns = times % 4\nwhile i < turns\n#{turn}#{count("i")}\nend"
              end
        @loop = methods_of("def run(times, state#{"s" if @before}, params)\n#{locals}\n#{run}\nend\n" \
                           "def once(state, params)\n#{locals}\n#{@times ? "yield(1)" : "yield(#{given.sub("states[i]", "state")})"}\nend\n")
        compile_filler
      end

      def compile_filler
        return unless @before

        locals, given = arguments(@before, "state")
        @filler = methods_of("def fill(times, states, state, params)\n#{locals}\ni = 0\nwhile i < times\n" \
                             "states[i] = yield(#{given})\ni = i.succ\nend\nend\n")
      end

      def methods_of(source)
        Object.new.tap { |object| object.instance_eval(source.gsub(/^def /, "def self."), __FILE__, __LINE__) }
      end

      # What a block is given, as source, and the local variables which that needs.
      def arguments(block, state)
        words = Work.words(block, @params)
        given = words.map { |name| "#{name}: value_of_#{name}" }
        given.unshift(state) if !@job.passes_times? && Work.positional?(block)
        [words.map { |name| "value_of_#{name} = params[:#{name}]" }.join("\n"), given.join(", ")]
      end

      # One more: what each kind of Ruby does fastest, and neither by `+`.
      def count(name)
        Bench.jit? ? "#{name} -= -1" : "#{name} = #{name}.succ"
      end

      # The code stands in the loop itself. Its own local variables live on from iteration to iteration.
      def compile_code(label)
        magic = @body[/\A(?:[ \t]*#.*\n)*/]
        locals = @params.keys.map { |name| "#{name} = pitwall_params[:#{name}]; " }.join
        state = @job.passes_times? ? "" : "state = pitwall_state; "
        each_state = @before ? "state = pitwall_state[pitwall_i]; " : ""
        head = "lambda { |pitwall_times, pitwall_state, pitwall_params| #{locals}"
        line = 0 - magic.count("\n")
        @loop = Work.compile("#{magic}#{head}#{state}pitwall_i = 0; while pitwall_i < pitwall_times; #{each_state}#{count("pitwall_i")}\n" \
                             "#{@body}\nend }", label, line)
        @once = Work.compile("#{magic}#{head}#{state}\n#{@body}\n}", label, line)
        compile_filler
      end
    end

    # Reads clocks and counters around batches of iterations. One batch, one value of each.
    class Meter
      attr_reader :pid, :wall, :cpu, :objects, :gc_runs, :gc_time

      def initialize(batches)
        @wall, @cpu, @objects, @gc_runs, @gc_time = Array.new(5) { Array.new(batches, 0) }
        @gc = GC
        @process = Process
        @monotonic = Process::CLOCK_MONOTONIC
        @cpu_clock = Process::CLOCK_PROCESS_CPUTIME_ID
        @pid = Process.pid
        @times_gc = GC.respond_to?(:total_time)
        find_heaps
        @slots = Array.new(batches) { Array.new(@heaps, 0) }
        @slots_before = Array.new(@heaps, 0)
      end

      # Runs a batch; what is read goes where `index` says.
      # @return [Integer] its wall time, ns
      def take(index, work, times)
        gc = @gc
        process = @process
        monotonic = @monotonic
        cpu_clock = @cpu_clock
        times_gc = @times_gc
        heaps = @heaps
        slots_before = @slots_before
        clear(index)
        while times > 0
          now = work.prepare(times)
          heap = 0
          while heap < heaps
            slots_before[heap] = gc.stat_heap(heap, :total_allocated_objects)
            heap = heap.succ
          end
          objects = gc.stat(:total_allocated_objects)
          gc_runs = gc.count
          gc_time = times_gc ? gc.total_time : 0
          cpu = process.clock_gettime(cpu_clock, :nanosecond)
          wall = process.clock_gettime(monotonic, :nanosecond)
          work.run(now)
          wall -= process.clock_gettime(monotonic, :nanosecond)
          cpu -= process.clock_gettime(cpu_clock, :nanosecond)
          gc_time -= times_gc ? gc.total_time : 0
          gc_runs -= gc.count
          objects -= gc.stat(:total_allocated_objects)
          heap = 0
          while heap < heaps
            @slots[index][heap] -= slots_before[heap] - gc.stat_heap(heap, :total_allocated_objects)
            heap = heap.succ
          end
          @wall[index] -= wall
          @cpu[index] -= cpu
          @gc_time[index] -= gc_time
          @gc_runs[index] -= gc_runs
          @objects[index] -= objects
          times -= now
        end
        work.release
        # A child that the case forked and that came back here has no business of its own.
        process.exit!(0) if process.pid != @pid
        @wall[index]
      end

      # Bytes of the slots in Ruby's heap that the objects of each batch took; what they hold outside it is not in them.
      def bytes
        return @objects.map { |objects| objects * @slot_sizes.first } if @heaps.zero?

        @slots.map { |slots| slots.zip(@slot_sizes).sum { |objects, size| objects * size } }
      end

      private

      def clear(index)
        @wall[index] = @cpu[index] = @objects[index] = @gc_runs[index] = @gc_time[index] = 0
        @slots[index].fill(0)
      end

      # Ruby 3.3 and newer count objects by size of slot.
      def find_heaps
        sizes = GC.respond_to?(:stat_heap) ? GC.stat_heap : {}
        counted = sizes.any? && sizes.values.all? { |heap| heap[:total_allocated_objects] && heap[:slot_size] }
        constants = GC.const_defined?(:INTERNAL_CONSTANTS) ? GC::INTERNAL_CONSTANTS : {}
        one_size = constants[:BASE_SLOT_SIZE] || constants[:RVALUE_SIZE] || 40
        @slot_sizes = counted ? sizes.keys.sort.map { |heap| sizes[heap][:slot_size] } : [one_size]
        @heaps = counted ? @slot_sizes.size : 0
      end
    end

    # Finds how many iterations make a batch.
    module Calibration
      # A clock that is read around a millisecond adds less than a thousandth.
      TARGET_NS = 1_000_000
      MOST = 1_000_000_000
      # States made ahead for a batch may take so much memory.
      STATES_BYTES = 128 * 1024 * 1024

      # @return [Integer, Integer] iterations that take at least `target` ns (1 where one takes longer), and how many were run
      def self.batch(work, meter, target = TARGET_NS, start = 1)
        times = start
        spent = 0
        resident = resident_bytes
        loop do
          elapsed = meter.take(0, work, times)
          spent -= -times
          return [times, spent] if elapsed >= target || times >= MOST
          return [times, spent] if work.fresh_states? && resident_bytes - resident > STATES_BYTES

          times = larger(times, elapsed, target)
        end
      end

      # The number, rounded up to two digits, that should take a little longer than the target; at most ten times as many.
      def self.larger(times, elapsed, target)
        wanted = (times * (target * 1.1 / [elapsed, 1].max).clamp(1.05, 10)).ceil.clamp(times.succ, MOST)
        unit = 10**[Math.log10(wanted).floor - 1, 0].max
        (wanted.to_f / unit).ceil * unit
      end

      def self.resident_bytes
        File.read("/proc/self/statm").split[1].to_i * 4096
      rescue SystemCallError
        0
      end
    end

    # Two sides that do the same return the same: a digest of a value that doesn't depend on identity, hash seeds or the
    # order of a Hash.
    module Digest
      LONGEST = 8 * 1024 * 1024
      MASK = (1 << 64) - 1

      class << self
        #: (untyped) -> String
        def of(value)
          text = String.new
          complete = catch(:too_long) { write(value, text, {}.compare_by_identity) && text.bytesize <= LONGEST }
          rest = complete ? "" : " (of its first part)"
          format("%<kind>s %<hash>016x%<rest>s", kind: value.class.name || "Object", hash: hash(text.byteslice(0, LONGEST)), rest: rest)
        end

        private

        # FNV-1a, over words of eight bytes.
        def hash(text)
          text << "\0" * (8 - (text.bytesize % 8))
          text.unpack("Q>*").inject(0xcbf29ce484222325) { |hash, word| ((hash ^ word) * 0x100000001b3) & MASK }
        end

        def write(value, text, parents)
          throw :too_long if text.bytesize > LONGEST
          text << value.class.name.to_s << ":"
          case value
          when nil, true, false, Integer, Float, Symbol, Rational, Complex, Regexp then text << value.inspect.b
          when String then text << value.encoding.name << ":" << value.bytesize.to_s << ":" << value.b
          when Module then text << value.name.to_s.b
          when Proc, Method, UnboundMethod, IO, Thread then nil
          else write_parts(value, text, parents)
          end
          text << ";"
        end

        def write_parts(value, text, parents)
          return text << "again" if parents.key?(value)

          parents[value] = true
          case value
          when Array then value.each { |item| write(item, text, parents) }
          when Hash then text << value.map { |key, item| [key, item].inject(String.new) { |pair, part| write(part, pair, parents) } }.sort.join
          when Range then [value.begin, value.end, value.exclude_end?].each { |part| write(part, text, parents) }
          when Exception then write(value.message, text, parents)
          when Time then text << value.to_r.to_s << value.utc_offset.to_s
          else write_fields(value, text, parents)
          end
          parents.delete(value)
        end

        def write_fields(value, text, parents)
          record = value.is_a?(Struct) || (defined?(Data) && Data.is_a?(Class) && value.is_a?(Data)) # before 3.0 Data was something else
          return write(value.to_h, text, parents) if record && value.respond_to?(:to_h)
          return write(value.to_a.map { |item| write(item, String.new, parents) }.sort, text, parents) if defined?(Set) && value.is_a?(Set)

          value.instance_variables.sort.each do |name|
            text << name.to_s.b
            write(value.instance_variable_get(name), text, parents)
          end
        end
      end
    end

    # Where the process has its core to itself.
    module NoTurns
      class << self
        def await; end

        def pass; end

        def without_waits(counters, _batches)
          counters
        end
      end
    end

    # The processes of a block take turns (the host's turns.rb): each waits for a byte, and says one when it is done.
    class InTurns
      def initialize(take, pass)
        @take, @pass = [take, pass].zip(%w[rb wb]).map { |number, mode| IO.for_fd(number, mode) }
        [@take, @pass].each { |io| io.close_on_exec = true }
        @byte = String.new(" ")
      end

      def await
        @take.sysread(1, @byte)
      rescue EOFError
        Process.exit!(70) # the host has given up this block
      end

      def pass
        @pass.syswrite(".")
      end

      # Each wait was one switch of our own making.
      def without_waits(counters, batches)
        name = "voluntary_switches"
        counters.key?(name) ? counters.merge(name => [counters[name] - batches, 0].max) : counters
      end
    end

    # Measures one case in this process: first call, warm-up until it is steady, timed batches.
    class Measurement
      STEADY_WITHIN = 0.02
      WINDOW = 5
      LEAST_WARMUP = 10
      LEAST_SLOW_WARMUP = 2
      MOST_WARMUP = 60
      WARMUP_NS = 3_000_000_000
      SLOW_NS = 100_000_000
      # A JIT compiles a method on its thirtieth call or so: a case must have run more often.
      JIT_ITERATIONS = 50
      BATCHES = 30
      LEAST_BATCHES = 3
      TIMED_NS = 300_000_000
      # What is timed should take so many of the clock's steps.
      STEPS = 100

      attr_reader :batch, :batches, :warmup, :first_ns, :digest, :notes

      # batch, batches, warmup: 0 to find them; turns: others run between this process's batches
      def initialize(work, batch: 0, batches: 0, warmup: 0, check: false, turns: NoTurns)
        @work = work
        @turns = turns
        @batch = batch
        @batches = batches
        @wanted_warmup = warmup
        @check = check
        @notes = []
        @scratch = Meter.new(1)
      end

      # The process up to the timed part.
      def warm_up
        @threads = Thread.list.size
        run_first
        @warmup = @work.prime - -1
        find_batch if @batch.zero?
        times = @wanted_warmup.zero? ? become_steady : run_warmup(@wanted_warmup)
        @batches = choose_batches(Measurement.median(times)) if @batches.zero?
        come_to_rest
      end

      # The timed part.
      def take
        @meter = Meter.new(@batches)
        counters = Counters
        before = counters.read
        index = 0
        while index < @batches
          @turns.await
          @meter.take(index, @work, @batch)
          index = index.succ
          @turns.pass
        end
        after = counters.read
        @counters = @turns.without_waits(counters.difference(before, after), @batches)
        note_what_was_seen
      end

      # Warm: the others may become so.
      def turn_over
        @turns.pass
      end

      # What is left takes time that another's batch would miss.
      def last_turn
        @turns.await
      end

      # Only runs: a profiler watches.
      def run_only(batches)
        find_batch if @batch.zero?
        run_warmup(batches)
      end

      # metric → values
      def values
        { "wall" => @meter.wall, "cpu" => @meter.cpu, "objects" => @meter.objects, "bytes" => @meter.bytes,
          "gc_runs" => @meter.gc_runs, "gc_time" => @meter.gc_time }.merge(@counters)
      end

      def self.median(values)
        values.sort[values.size / 2]
      end

      private

      # The value of the very first call is the one digested: it is the only call that all processes make in the same state.
      def run_first
        @work.prepare(1)
        started = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
        value = @work.once
        @first_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - started
        @work.release
        Process.exit!(0) unless Process.pid == @scratch.pid
        @digest = Digest.of(value) if @check
      end

      def find_batch(start = 1)
        @batch, spent = Calibration.batch(@work, @scratch, Calibration::TARGET_NS, start)
        @calibrated = true
        @warmup -= -spent if @warmup
      end

      def run_warmup(batches)
        (1..batches).map { warm_batch }
      end

      # All processes collected at the same point would go on with their collections in the same batches: what a side's batches
      # hold would be chance, the same chance in each process. So each begins at another point between two collections. (By the
      # system's entropy: a file may seed Ruby's.)
      def come_to_rest
        GC.start
        run_warmup(Random.new_seed % @batches.succ) if @collected
      end

      # @return [Integer] its wall time without garbage collection, ns
      def warm_batch
        @warmup -= -@batch if @warmup
        wall = @scratch.take(0, @work, @batch)
        @collected = true if @scratch.gc_runs[0] > 0
        wall - @scratch.gc_time[0]
      end

      # Until the last two windows agree. Where the batch was found here and the code has become faster since, finds it again.
      def become_steady
        started = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
        times = []
        found = 1
        loop do
          times << warm_batch
          if enough?(times)
            return times unless @calibrated && found < 3 && Measurement.median(times.last(WINDOW)) < Calibration::TARGET_NS && grow_batch

            found = found.succ
            times = []
          elsif tried?(times, Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - started)
            @notes << "unsteady"
            return times
          end
        end
      end

      def tried?(times, elapsed_ns)
        times.size >= LEAST_SLOW_WARMUP && (times.size >= MOST_WARMUP || elapsed_ns > WARMUP_NS)
      end

      def grow_batch
        before = @batch
        find_batch(@batch)
        @batch > before
      end

      def enough?(times)
        slow = Measurement.median(times) > SLOW_NS
        return false if times.size < (slow ? LEAST_SLOW_WARMUP : LEAST_WARMUP)
        return false if Bench.jit? && !slow && @warmup < JIT_ITERATIONS

        window = [times.size / 2, WINDOW].min
        earlier, later = [times.last(window * 2).first(window), times.last(window)].map { |part| Measurement.median(part) }
        (earlier - later).abs <= STEADY_WITHIN * [earlier, later].max
      end

      def choose_batches(batch_ns)
        (TIMED_NS / [batch_ns, 1].max).clamp(LEAST_BATCHES, BATCHES)
      end

      def note_what_was_seen
        @notes << "threads_left" if Thread.list.size > @threads
        timed_at_once = @work.fresh_states? ? [@batch, Work::AHEAD].min : @batch
        @notes << "coarse_clock" if Measurement.median(@meter.wall) * timed_at_once / @batch < STEPS * clock_step
      end

      # The least time that the clock can tell: its step, or what reading it takes.
      def clock_step
        (1..50).map do
          before = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
          after = before
          after = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) until after > before
          after - before
        end.min
      end
    end

    # What the kernel and the VM have counted for this process so far.
    module Counters
      PEAK = "max_rss"

      class << self
        #: () -> Hash[String, Integer]
        def read
          kernel.merge(vm)
        end

        # What happened in between; a peak is as of the later one.
        def difference(before, after)
          after.to_h { |name, value| [name, name == PEAK ? value : value - before.fetch(name, 0)] }
        end

        private

        def kernel
          status = File.read("/proc/self/status")
          # After the name, which is in brackets and may hold anything: fields 3 and on.
          fields = File.read("/proc/self/stat").rpartition(")").last.split
          { "minor_faults" => fields[7].to_i, "major_faults" => fields[9].to_i,
            "voluntary_switches" => status[/^voluntary_ctxt_switches:\s*(\d+)/, 1].to_i,
            "involuntary_switches" => status[/^nonvoluntary_ctxt_switches:\s*(\d+)/, 1].to_i,
            PEAK => status[/^VmHWM:\s*(\d+)/, 1].to_i * 1024 }
        rescue SystemCallError
          {} # not Linux
        end

        def vm
          return {} unless defined?(RubyVM) && RubyVM.respond_to?(:stat)

          RubyVM.stat.transform_keys(&:to_s)
        end
      end
    end

    # Empties a method, to test the suspicion that it is what takes the time.
    module Stub
      #: (String) -> void
      def self.empty(name)
        match = /\A((?:::)?[A-Z]\w*(?:::[A-Z]\w*)*)([#.])(.+)\z/m.match(name)
        raise Misuse, "#{name.inspect} names no method: Foo#bar or Foo.bar" unless match

        owner = Object.const_get(match[1])
        owner = owner.singleton_class if match[2] == "."
        method = owner.instance_method(match[3])
        replace(owner, method, visibility(owner, method.name))
      rescue NameError
        raise Misuse, "#{name} doesn't exist once the benchmark is loaded: give the name of a method that does"
      end

      # With the parameters it had, where they can be had without an Array or a Hash for the rest: the empty method must allocate
      # nothing. Prepended, so that it comes before all others.
      def self.replace(owner, method, visibility)
        kinds = method.parameters.map(&:first)
        parameters = method.parameters.each_with_index.filter_map do |(kind, name), index|
          case kind
          when :req, :opt then "a#{index} = nil"
          when :key, :keyreq then "#{name}: nil"
          end
        end
        parameters = [*("*" if kinds.include?(:rest)), *("**" if kinds.include?(:keyrest))] if (kinds & %i[rest keyrest nokey]).any?
        empty = Module.new
        if plain?(method.name)
          empty.module_eval("def #{method.name}(#{parameters.join(", ")}); end", __FILE__, __LINE__)
        else
          empty.send(:define_method, method.name) { |*, **| nil }
        end
        empty.send(visibility, method.name)
        owner.send(:prepend, empty)
      end

      def self.plain?(name)
        name.match?(/\A[[:alpha:]_]\w*[?!=]?\z/) || name.match?(%r{\A(?:[+\-*/%~!^&|<>`]|\*\*|[+\-!~]@|<<|>>|<=|>=|<=>|==|===|=~|!=|!~|\[\]=?)\z})
      end

      def self.visibility(owner, name)
        %w[private protected].find { |kind| owner.send("#{kind}_method_defined?", name) } || "public"
      end
      private_class_method :replace, :plain?, :visibility
    end

    # The other end of the pipe. It answers in lines of fields separated by tabs, with \\ \t \n escaped:
    #
    #   list: case INDEX BLOCK_INDEX BLOCK_NAME LABEL PARAMS FLAGS · note ignored:CALL · end
    #   run:  ready BATCH BATCHES · first NS · warmup ITERATIONS · values METRIC "v v v" · iterations N · batch N · note NAME ·
    #         digest TEXT · done
    #   error PHASE CLASS MESSAGE FILE:LINE, then the process ends with status 70; PHASE is load, setup, run or stub
    #
    # Keys: require=PATH (may be repeated), codefile=PATH (of -e), case=INDEX, block=BLOCK_INDEX:INDEX_OF_ITS_FIRST_CASE (bodies of
    # other blocks are not run), batch=N, batches=N, warmup=N (each 0 to find it), turns=FD,FD (see InTurns), check=1, stub=Foo#bar, iterations_only=BATCHES.
    class Child
      FAILED = 70
      ESCAPES = { "\\" => "\\\\", "\t" => "\\t", "\n" => "\\n" }.freeze
      # Lines of a backtrace that only say how a file is loaded.
      LOADERS = %r{/(?:rubygems|bundler|bundled_gems|bootsnap)[^:]*:\d+:in [`'](?:Kernel#)?[\w:.#]*require}.freeze
      # Calls that measure by themselves, in ways that can't be taken over.
      REFUSED = { bm: "benchmark", bmbm: "benchmark", benchmark: "benchmark", memory: "benchmark-memory", driver: "benchmark-driver",
                  compare: "benchmark-ips" }.freeze

      def initialize(descriptor, mode, file, *pairs)
        @pid = Process.pid
        @pipe = open_pipe(Integer(descriptor))
        @identity = [@pipe.stat.dev, @pipe.stat.ino]
        @mode = mode
        @file = file
        @keys = Hash.new { |_, key| raise ArgumentError, "#{key}= is missing" }
        @requires = []
        pairs.each do |pair|
          key, value = pair.split("=", 2)
          key == "require" ? @requires << value : @keys[key] = value
        end
        @phase = "load"
        @count = 0
        @forked = false
      end

      # Loads the file, lists or measures, and ends the process.
      def go
        raise ArgumentError, "#{@mode}: list or run" unless %w[list run].include?(@mode)

        take_over
        @requires.each { |path| require path }
        @file == "-e" ? open_code : load(@file)
        finish
      rescue SystemExit => error
        @phase == "load" && error.success? ? finish : report(error)
      rescue Exception => error # rubocop:disable Lint/RescueException -- whatever it is, it is said in a line
        report(error)
      ensure
        report(ThreadError.new("the main thread was ended")) # nobody comes here otherwise
      end

      # --- what Bench.open asks ---

      def wants?(block)
        only = @keys.fetch("block", nil)
        only.nil? || only.to_i == block
      end

      def skip(_job)
        Report.new([])
      end

      def run(job)
        first = @keys.key?("block") ? @keys["block"].split(":").last.to_i : @count
        if @mode == "list"
          job.cases.each_with_index { |kase, index| list(kase, job, first - -index) }
          job.ignored.each { |call| say("note", "ignored:#{call}") }
        else
          wanted = number("case") - first
          measure(job.cases[wanted]) if wanted >= 0 && wanted < job.cases.size
        end
        @count = first - -job.cases.size
        Report.new(job.cases.map { |kase| Entry.new(kase.label, 1.0, 1.0, 0.0, 0.0, 1, 1) }, job.compare?)
      end

      # --- what happens to the process meanwhile ---

      def forked
        @forked = true
      end

      # In the child of a fork: nothing of it is ever to be written.
      def disown
        @pipe.close
      rescue IOError, SystemCallError
        nil
      end

      private

      # Away from the low numbers, which cases that close "all" descriptors go through, and not for the programs that they start.
      def open_pipe(number)
        given = IO.for_fd(number, "wb")
        most = [Process.getrlimit(Process::RLIMIT_NOFILE).first, 1024].min
        pipe = IO.for_fd(given.fcntl(0, [most - 24, number].max), "wb") # 0 is F_DUPFD
        given.close
        pipe.close_on_exec = true
        pipe.sync = true
        pipe
      rescue SystemCallError, ArgumentError
        abort "pitwall: descriptor #{number} is not open for writing: answers go there"
      end

      def take_over
        ARGV.clear
        $0 = @file
        %w[benchmark/ips.rb pitwall/ips.rb].each { |feature| $LOADED_FEATURES << feature.dup unless $LOADED_FEATURES.include?(feature) }
        Bench.runner = self
        refuse_others
        watch_forks
        keep_data
      end

      def refuse_others
        ::Benchmark.singleton_class.send(:prepend, Module.new do
          REFUSED.each do |name, peer|
            define_method(name) do |*|
              raise Misuse, "Benchmark.#{name} (of #{peer}) can't be taken over: write it with Benchmark.ips or Pitwall.bench"
            end
          end
        end)
      end

      def watch_forks
        return unless Process.respond_to?(:_fork)

        child = self
        Process.singleton_class.send(:prepend, Module.new do
          define_method(:_fork) do
            pid = super()
            pid.zero? ? child.disown : child.forked
            pid
          end
        end)
      end

      # `load` gives no DATA.
      def keep_data
        return if @file == "-e" || !File.file?(@file)

        place = /^__END__\r?(?:\n|\z)/n.match(File.binread(@file))
        return unless place

        data = File.open(@file)
        data.seek(place.end(0))
        Object.const_set(:DATA, data)
      end

      def open_code
        code = File.read(@keys["codefile"], encoding: Encoding::UTF_8)
        Bench.open(Job.new("-e"), proc { |job| job.report("-e", code) })
      end

      def list(kase, job, index)
        params = kase.params.map { |name, value| "#{name}=#{Sweep.show(value)}" }.join(",")
        say("case", index, job.index, job.name, kase.label, params, job.flags.join(","))
      end

      def measure(kase)
        @phase = "setup"
        work = Work.new(kase)
        @phase = "stub"
        Stub.empty(@keys["stub"]) if @keys.key?("stub")
        @phase = "run"
        turns = @keys.key?("turns") ? InTurns.new(*@keys["turns"].split(",").map { |number| Integer(number) }) : NoTurns
        measurement = Measurement.new(work, batch: number("batch", 0), batches: number("batches", 0), warmup: number("warmup", 0),
                                            check: @keys.fetch("check", "0") == "1", turns: turns)
        turns.pass
        turns.await
        only = number("iterations_only", 0)
        only.zero? ? measure_fully(measurement) : measurement.run_only(only)
        @phase = "setup"
        work.finish
        write(measurement) if only.zero?
        say("done")
        leave(0)
      end

      def measure_fully(measurement)
        measurement.warm_up
        measurement.turn_over
        say("ready", measurement.batch, measurement.batches)
        say("first", measurement.first_ns)
        say("warmup", measurement.warmup)
        measurement.take
        measurement.last_turn
      end

      def write(measurement)
        measurement.values.each { |metric, values| say("values", metric, Array(values).join(" ")) }
        say("iterations", measurement.batch * measurement.batches)
        say("batch", measurement.batch)
        measurement.notes.push(*("forked" if @forked), *("in_turns" if @keys.key?("turns"))).each { |note| say("note", note) }
        say("digest", measurement.digest) if measurement.digest
      end

      def number(key, default = nil)
        Integer(default ? @keys.fetch(key, default) : @keys[key])
      end

      # The file has come to its end.
      def finish
        if @mode == "run"
          report(Misuse.new("case #{@keys.fetch("case", "?")} was never reached: the file ended after #{@count} cases; " \
                            "it must state the same ones each time"))
        end

        say("end")
        leave(0)
      end

      def report(error)
        say("error", @phase, error.is_a?(Misuse) ? "Pitwall::UsageError" : error.class, message_of(error), place_of(error))
      ensure
        leave(FAILED)
      end

      def message_of(error)
        case error
        when SystemExit then ["exit was called (status #{error.status})", *(error.message unless error.message == "exit")].join(": ")
        when SignalException then "signal #{error.message.empty? || error.message == "Interrupt" ? "SIGINT" : error.message}"
        # Without what other libraries add of the source; what Ruby before 3.4 shows of the receiver may be anything, and long.
        when NameError then Exception.instance_method(:to_s).bind_call(error).sub(/ for #<([\w:]+).*\z/m, ' for an instance of \1')[0, 2000]
        else error.message.to_s[0, 2000]
        end
      rescue StandardError
        error.class.name # an error whose message raises
      end

      # The topmost line of the user's.
      def place_of(error)
        if error.is_a?(SyntaxError)
          place = error.message[/\A(?:--> )?(.+?:\d+)(?::|$)/, 1]
          return place if place
        end
        ours = error.backtrace.to_a.reject { |line| line.start_with?(__FILE__, "<internal:") || line.match?(LOADERS) }
        ours.first ? ours.first[/\A.*?:\d+/m] : @file
      end

      def say(*fields)
        Process.exit!(1) unless Process.pid == @pid
        raise IOError, "it is another file now" unless [@pipe.stat.dev, @pipe.stat.ino] == @identity

        @pipe.write("#{fields.map { |field| escape(field) }.join("\t")}\n")
      rescue IOError, SystemCallError => error
        STDERR.puts "pitwall: the benchmark closed the descriptor that its results go to (#{error.message})" unless error.is_a?(Errno::EPIPE)
        Process.exit!(FAILED)
      end

      def escape(field)
        text = field.to_s
        text = if [Encoding::UTF_8, Encoding::BINARY, Encoding::US_ASCII].include?(text.encoding) then text.dup.force_encoding(Encoding::UTF_8)
               else text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace)
               end
        text.scrub("?").gsub(/[\\\t\n]/, ESCAPES)
      end

      # at_exit handlers of the file are not run: what they would do is not what is measured, and a child may already have run them.
      def leave(status)
        [$stdout, $stderr, STDOUT, STDERR].each do |stream|
          stream.flush
        rescue StandardError
          nil
        end
        Session.stop if defined?(Session) && Session.recording? # `exit!` would lose the last second of a profile
      ensure
        Process.exit!(status)
      end
    end
  end

  class << self
    # A block of cases, in a file that is run by `pitwall bench` or that requires "pitwall/ips":
    #
    #   Pitwall.bench("join") do |x|
    #     x.param :n, 10, 100, 1000, 10_000             # measured at each; several params: their product
    #     x.setup { |n:| Array.new(n, "word") }         # once a process; its value is the state
    #     x.before { |words| words.dup }                # before each iteration, outside the clock
    #     x.report("join") { |words| words.join(",") }
    #     x.report("inject", 'state.inject { |a, b| a + "," + b }')
    #     x.after { |words| words.clear }
    #     x.compare!
    #   end
    #
    # A case's block gets the state (without a setup the params, if there are any) and, as keywords, the params it names.
    #
    # @raise [UsageError] a call that isn't known, two cases of one label
    #: (?String?) { (Pitwall::Bench::Sweep) -> void } -> Pitwall::Bench::Report
    def bench(name = nil, &block)
      Pitwall::Bench.open(Pitwall::Bench::Sweep.new("Pitwall.bench", name), block)
    end
  end
end

# In no module, with main as self and no local variables.
Pitwall::Bench::BLANK = proc { binding }

# The calls of benchmark-ips.
module Benchmark
  module IPS
    # Read by nobody: some files set a format here.
    def self.options
      @options ||= {}
    end
  end

  class << self
    # Benchmark.ips { |x| … }, (time: 2, warmup: 1) or (2, 1)
    #: (*untyped, **untyped) { (Pitwall::Bench::Job) -> void } -> Pitwall::Bench::Report
    def ips(*arguments, **settings, &block)
      settings = arguments.pop.merge(settings) if arguments.last.is_a?(Hash)
      positional = %i[time warmup quiet].zip(arguments).to_h.compact
      Pitwall::Bench.open(Pitwall::Bench::Job.new("Benchmark.ips", "", positional.merge(settings)), block)
    end

    # Compares methods of one object: Benchmark.ips_quick(:upcase, :downcase, on: "x")
    #: (*Symbol, ?on: untyped, **untyped) -> Pitwall::Bench::Report
    def ips_quick(*names, on: Kernel, **settings)
      raise Pitwall::Bench::Misuse, "Benchmark.ips_quick needs methods: Benchmark.ips_quick(:upcase, :downcase, on: \"x\")" if names.empty?

      ips(**settings) do |x|
        names.each { |name| x.report(name) { on.__send__(name) } }
        x.compare!
      end
    end
  end
end

Pitwall::Bench::Child.new(*ARGV).go if $0 == __FILE__
