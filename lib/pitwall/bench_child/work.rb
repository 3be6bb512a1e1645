# frozen_string_literal: true

module Pitwall
  module Bench
    # A case that is ready to run: its state, and a loop that is compiled for this case alone. A loop shared by all
    # cases would be slower, and slower still the more cases a file has.
    class Work
      # The most iterations whose states are made ahead, outside the clock.
      MAX_STATES = 1000
      POSITIONAL = %i[req opt rest].freeze
      # How often `prime` enters the loop.
      LOOP_ENTRIES = 150
      private_constant :POSITIONAL

      class << self
        def positional?(block)
          block.parameters.any? { |kind, _| POSITIONAL.include?(kind) }
        end

        # The names of the params that a block takes as keywords.
        def keywords(block, params)
          declared = block.parameters.select { |kind, _| %i[key keyreq].include?(kind) }
          missing = declared.find { |kind, name| kind == :keyreq && !params.key?(name) }
          raise Misuse, "a block takes #{missing.last}: but there is no x.param :#{missing.last}" if missing

          block.parameters.any? { |kind, _| kind == :keyrest } ? params.keys : params.keys & declared.map(&:last)
        end

        # Whether a name can be a local variable.
        def local_name?(name)
          name.match?(/\A[a-z_]\w*\z/) && (compile("proc { |#{name}| }", "") ? true : false)
        rescue SyntaxError
          false
        end

        # @raise [SyntaxError] with the label for a file name
        def check(code, label)
          compile("proc { #{code}\n}", label)
        rescue SyntaxError
          # The code compiled by itself gives the right line number.
          RubyVM::InstructionSequence.compile(code, label) if defined?(RubyVM::InstructionSequence)
          raise
        end

        # Compiles code outside all modules, with main as self and without local variables.
        def compile(code, label, line = 1)
          verbose = $VERBOSE
          $VERBOSE = nil
          eval(code, BLANK.call, label, line) # rubocop:disable Security/Eval -- the user gave the code to be run
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
        @argument = @before ? @states : @state
      end

      # Whether the case's block gets the number of iterations and loops itself.
      def passes_times?
        @times
      end

      def fresh_states?
        @before ? true : false
      end

      # Makes the states for the next run, outside the clock.
      # @return [Integer] the number of iterations that have a state; at most `times`
      def prepare(times)
        return times unless @before

        times = MAX_STATES if times > MAX_STATES
        @filler.fill(times, @states, @state, @params, &@before)
        times
      end

      # Runs `times` iterations. Allocates nothing of its own.
      def run(times)
        @code ? @loop.call(times, @argument, @params) : @loop.run(times, @argument, @params, &@body)
      end

      # Runs one iteration.
      # @return its value
      def once
        state = @before ? @states[0] : @state
        @code ? @once.call(1, state, @params) : @loop.once(state, @params, &@body)
      end

      # Drops the states of the last iterations.
      def release
        @states.fill(nil) if @before
      end

      # Enters the loop often with 0 iterations. A JIT compiles a loop at its entry, after some thirty entries. A case
      # that loops itself gets 1 iteration at a time, as often as fits into 0.1 s.
      # @return [Integer] iterations run
      def prime
        return LOOP_ENTRIES.times { run(0) } && 0 unless @times

        limit = Process.clock_gettime(Process::CLOCK_MONOTONIC, :millisecond) - -100
        (1..LOOP_ENTRIES).find do |entry|
          run(1)
          entry == LOOP_ENTRIES || Process.clock_gettime(Process::CLOCK_MONOTONIC, :millisecond) > limit
        end
      end

      def finish
        release
        @job.tear_down(@state, @params)
      end

      private

      # The loop has four iterations a turn, which quarters the cost of counting.
      def compile_loop
        locals, arguments = call_source(@body, @before ? "states[i]" : "state")
        turn = "yield(#{arguments})\n"
        run = if @times then "yield(times)"
              elsif @before then "i = 0\nwhile i < times\n#{turn}#{increment("i")}\nend"
              else "i = 0\nturns = times / 4\nwhile i < turns\n#{turn * 4}#{increment("i")}\nend\n" \
                   "i = 0\nturns = times % 4\nwhile i < turns\n#{turn}#{increment("i")}\nend"
              end
        once = @times ? "yield(1)" : "yield(#{arguments.sub("states[i]", "state")})"
        @loop = object_with("def run(times, state#{"s" if @before}, params)\n#{locals}\n#{run}\nend\n" \
                            "def once(state, params)\n#{locals}\n#{once}\nend\n")
        compile_filler
      end

      def compile_filler
        return unless @before

        locals, arguments = call_source(@before, "state")
        @filler = object_with("def fill(times, states, state, params)\n#{locals}\ni = 0\nwhile i < times\n" \
                              "states[i] = yield(#{arguments})\ni = i.succ\nend\nend\n")
      end

      # @return an object with the methods of the source
      def object_with(source)
        Object.new.tap { |object| object.instance_eval(source.gsub(/^def /, "def self."), __FILE__, __LINE__) }
      end

      # @return [Array] two pieces of source: assignments of local variables, and the arguments of a call of the block
      def call_source(block, state)
        keywords = Work.keywords(block, @params)
        arguments = keywords.map { |name| "#{name}: value_of_#{name}" }
        arguments.unshift(state) if !@job.passes_times? && Work.positional?(block)
        [keywords.map { |name| "value_of_#{name} = params[:#{name}]" }.join("\n"), arguments.join(", ")]
      end

      # Source that adds 1 to a variable, in the form that is fastest with or without a JIT. Neither form calls `+`.
      def increment(name)
        Bench.jit? ? "#{name} -= -1" : "#{name} = #{name}.succ"
      end

      # The case's code is part of the loop itself. Its local variables keep their values from iteration to iteration.
      def compile_code(label)
        magic = @body[/\A(?:[ \t]*#.*\n)*/]
        locals = @params.keys.map { |name| "#{name} = pitwall_params[:#{name}]; " }.join
        state = @job.passes_times? ? "" : "state = pitwall_state; "
        each_state = @before ? "state = pitwall_state[pitwall_i]; " : ""
        head = "lambda { |pitwall_times, pitwall_state, pitwall_params| #{locals}"
        loop_head = "pitwall_i = 0; while pitwall_i < pitwall_times; #{each_state}#{increment("pitwall_i")}"
        line = 0 - magic.count("\n")
        @loop = Work.compile("#{magic}#{head}#{state}#{loop_head}\n#{@body}\nend }", label, line)
        @once = Work.compile("#{magic}#{head}#{state}\n#{@body}\n}", label, line)
        compile_filler
      end
    end
  end
end

# A binding outside all modules, with main as self and without local variables.
Pitwall::Bench::BLANK = proc { binding }
