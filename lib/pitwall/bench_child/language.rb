# frozen_string_literal: true

# The process in which `pitwall bench` and `pitwall compare` measure one case, and the calls of benchmark files.
#
#   ruby assembled.rb FD list|run FILE|-e [key=value …]
#
# The process runs on the Ruby under measurement, which may be any Ruby. It therefore loads no other file, uses core
# Ruby only, and keeps to the syntax of Ruby 2.7. It writes its results to descriptor FD, one line each (Child). Where
# pitwall/ips requires the file, the file only defines the calls and the instruments.
#
# Between two readings of a clock, Pitwall's code allocates nothing and looks up no constant: a case may
# have invalidated the constant caches. It counts by `succ` and adds by subtraction, because a benchmark
# file may redefine `Integer#+`.
module Pitwall
  # doc/measuring.md describes the calls for benchmark files.
  # @api private
  module Bench
    # A mistake in a benchmark file. The message is one line and says how to correct the file.
    Misuse = defined?(Pitwall::UsageError) ? Pitwall::UsageError : Class.new(StandardError)

    class << self
      # The object that handles each block of cases. `selected?(index)` is called before the body of a block, `run(job)`
      # after it, `skip(job)` instead of it.
      attr_accessor :runner

      # Runs the body of one block, `Benchmark.ips` or `Pitwall.bench`. The runner then lists or measures its cases.
      #: (Job, Proc?) -> Report
      def run_block(job, body)
        raise Misuse, "#{job.call} needs a block: #{job.call} { |x| x.report(\"label\") { … } }" unless body
        raise Misuse, "#{job.call} inside another block or case: put it after that block" if @open

        @open = true
        job.index = @blocks.to_i
        @blocks = job.index.succ
        return runner.skip(job) unless runner.selected?(job.index)

        body.call(job)
        job.close
        runner.run(job)
      ensure
        @open = false if job.index
      end

      def jit?
        return false unless defined?(RubyVM)

        %i[YJIT ZJIT RJIT MJIT].any? do |name|
          RubyVM.const_defined?(name) && RubyVM.const_get(name).respond_to?(:enabled?) &&
            RubyVM.const_get(name).enabled?
        end
      end
    end

    # One case of a file.
    #
    # job:    Job
    # label:  "join n=10"
    # body:   Proc or String of code
    # params: {n: 10}, the case's point in a sweep
    Case = Struct.new(:job, :label, :body, :params)

    # The value of a block of cases. `pitwall bench` measures after the block has returned: its entries hold ones.
    #
    # entries: Array of Entry, one a case
    # compare: whether the block called `compare!`
    Report = Struct.new(:entries, :compare) do
      def data
        entries.map { |entry| { name: entry.label, ips: entry.ips, stddev: entry.ips_sd } }
      end
    end

    # label:      "join"
    # ips:        iterations a second, median of the rounds
    # ns:         nanoseconds an iteration, median of the rounds
    # spread:     half the distance between the quartiles of the rounds, as a share of their median (0.02)
    # objects:    allocated an iteration
    # iterations: number of timed iterations
    # rounds:     number of rounds
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

    # The argument of the block of `Benchmark.ips`: the calls of benchmark-ips that files commonly use.
    class Job
      # Settings of duration and output. `pitwall bench` takes these from its own options instead.
      SETTINGS = %i[time warmup iterations stats confidence quiet].freeze
      # Calls that are accepted, so that files run unchanged, and reported as ignored.
      WITHOUT_EFFECT = %i[hold! save! json! independence independence! shuffle! suite= format=].freeze

      attr_reader :call, :name, :cases, :flags, :order, :ignored, :settings
      attr_accessor :index # the number of this block in its file, from 0

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
        settings.each do |name, value|
          SETTINGS.include?(name.to_sym) ? @settings[name.to_sym] = value : @ignored |= ["config #{name}"]
        end
        self
      end

      SETTINGS.each do |name|
        define_method(name) { @settings[name] }
        define_method(:"#{name}=") { |value| @settings[name] = value }
      end

      # Adds a case. Its body is a block or a String of code. In `Benchmark.ips` a block with one parameter gets the
      # number of iterations and loops itself.
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

      # Fixes the list of cases. Called when the body of the block has run.
      def close
        @cases = expand
        duplicate = @cases.map(&:label).tally.find { |_, count| count > 1 }
        raise Misuse, "#{call}: two cases are called #{duplicate.first.inspect}: give each its own label" if duplicate
      end

      # Whether the one parameter of a case's block is the number of iterations. Otherwise it is the state.
      def passes_times?
        true
      end

      def before_block; end

      # @return the state for a case
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
        if Sweep.method_defined?(name)
          raise Misuse, "#{call}: x.#{name} is known in Pitwall.bench only: write the block with that"
        end

        raise Misuse, "#{call}: x.#{name} is not known here; known are #{known.map { |each| "x.#{each}" }.join(", ")}"
      end

      def known
        %w[report item compare! config]
      end

      def expand
        @reports.map { |label, body| Case.new(self, label, body, {}) }
      end
    end
  end
end
