# frozen_string_literal: true

require "fileutils"

module Benchmarks
  # A million samples of the web-like loop at 10 kHz, kept in tmp/ for later runs. A quick pass takes a few and does not
  # keep them.
  class LongRecording
    SAMPLES = 1_000_000
    INTERVAL_NS = 100_000
    TRIAL_SECONDS = 4
    MARGIN = 1.1
    PROGRAM = File.join(ROOT, "benchmarks/programs/web_like.rb")
    private_constant :INTERVAL_NS, :TRIAL_SECONDS, :MARGIN, :PROGRAM

    def initialize(context)
      @context = context
    end

    # Yields the path and how many samples it holds.
    def with
      path, samples = record
      yield path, samples
    ensure
      FileUtils.rm_f(path) if path && @context.quick?
    end

    private

    # How long a million takes is found by trying, as this machine may miss ticks at 10 kHz.
    def record
      path = File.join(ROOT, "tmp", "benchmarks", "#{@context.quick? ? "few" : "million"}-#{RUBY_VERSION}.pit")
      FileUtils.mkdir_p(File.dirname(path))
      return [path, sample(path, 0.2)] if @context.quick?
      return [path, Integer(File.read("#{path}.samples"))] if kept?(path)

      seconds = TRIAL_SECONDS
      samples = sample(path, seconds)
      while samples < SAMPLES
        seconds = (seconds * SAMPLES * MARGIN / samples).ceil
        samples = sample(path, seconds)
      end
      File.write("#{path}.samples", samples.to_s)
      [path, samples]
    end

    # A recording of another version of the program would have other stacks.
    def kept?(path) = File.exist?(path) && File.exist?("#{path}.samples") && File.mtime(path) > File.mtime(PROGRAM)

    def sample(path, seconds)
      run = @context.child(profiler: "pitwall_signal", measure: "once", program: "web_like", amount: 10,
                           seconds: seconds, interval_ns: INTERVAL_NS, out: path)
      run ? run[:ticks] : raise(Context::Failure, "no recording to report on")
    end
  end
end
