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
  end
end
