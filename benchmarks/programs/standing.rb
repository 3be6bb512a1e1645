# frozen_string_literal: true

# Threads that stand still, beside a main thread that computes or stands still as well: what it costs to look at either.
#
#   ruby benchmarks/programs/standing.rb [SLEEPERS]     # default 200, for two seconds
module Programs
  class Standing
    #: (Integer, bool) -> void
    def initialize(sleepers, busy)
      @sleepers = Array.new(sleepers) { Thread.new { sleep } }
      @busy = busy
      Thread.pass until @sleepers.all? { |thread| thread.status == "sleep" }
    end

    # For so many seconds.
    #: (Float) -> void
    def run(seconds)
      return sleep(seconds) unless @busy

      finish = now + seconds
      compute while now < finish
    end

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def compute
      x = 1
      3000.times { |i| x = step(x, i) }
      x
    end

    def step(x, i) = ((x * 31) + i) & 0xffff
  end
end

Programs::Standing.new(Integer(ARGV.fetch(0, "200")), true).run(2.0) if $PROGRAM_NAME == __FILE__
