# frozen_string_literal: true

module Pitwall
  module Bench
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
  end
end

# In no module, with main as self and no local variables.
Pitwall::Bench::BLANK = proc { binding }
