# frozen_string_literal: true

require "json"

# A program whose shares are known: it spends measured time in nine methods, each of another kind, and prints what it
# really spent, so that a profile of it can be checked.
#
#   ruby benchmarks/programs/truth.rb [SECONDS]     # default 2; prints the ground truth as JSON
#
# Each section is visited several times in a random order (another each time; the truth names its seed). It runs until
# its part of the clock is used up. The clocks are read around each visit: CLOCK_MONOTONIC for wall time and the
# thread's own CPU clock, which does not depend on the kernel's tick. Inside a visit the clock is read rarely, so that
# reading the clock does not become part of the profile.
module Programs
  class Truth
    # Method => share of the time, in percent. The shares that count are those measured, not these.
    SECTIONS = {
      "heavy" => 24,      # four methods of plain Ruby
      "middle" => 14,
      "light" => 8,
      "slight" => 4,
      "one_long_call" => 14, # one C function that does not come back for a long time
      "bignum_power" => 8,
      "allocate" => 10,   # with the garbage collection that it causes
      "doze" => 10,       # no CPU at all
      "tiny_calls" => 8
    }.freeze
    VISITS = 5 # of each section in a pass; the long call has one
    PASS_NS = 1_000_000_000
    UNEVEN = 0.75..1.25 # visits of whole milliseconds would let a 1 ms sampler count them exactly, by luck
    LEAST_NS = 200_000 # a visit shorter than the cost of looking at the clock would prove nothing

    # The method that holds everything; profiles of the whole command are compared below it.
    ROOT = "all_sections"

    def initialize(seconds, seed: Random.new_seed & 0xffff_ffff)
      @seed = seed
      @passes = [seconds.round, 1].max
      @pass_ns = (seconds * 1e9 / @passes).round
      @random = Random.new(seed)
      @spent = SECTIONS.to_h { |name, _share| [name, { wall_ns: 0, cpu_ns: 0, visits: 0 }] }
      @kept = []
      prepare
    end

    # Runs all sections and returns the ground truth.
    #: () -> Hash
    def run
      wall = wall_ns
      cpu = cpu_ns
      all_sections
      wall = wall_ns - wall
      cpu = cpu_ns - cpu
      main = { name: "main", native_thread_id: Thread.current.native_thread_id, wall_ns: wall, cpu_ns: cpu,
               sections: @spent }
      { program: "truth", root: ROOT, seed: @seed, wall_ns: wall, cpu_ns: cpu, threads: [main] }
    end

    private

    def all_sections
      @passes.times { schedule.each { |name, budget_ns| visit(name, budget_ns) } }
    end

    def schedule
      SECTIONS.flat_map do |name, share|
        visits = name == "one_long_call" ? 1 : VISITS
        Array.new(visits) { [name, [(@pass_ns * share / 100 / visits * @random.rand(UNEVEN)).round, LEAST_NS].max] }
      end.shuffle(random: @random)
    end

    def visit(name, budget_ns)
      cpu = cpu_ns
      wall = wall_ns
      send(name, wall + budget_ns)
      spent = @spent.fetch(name)
      spent[:wall_ns] += wall_ns - wall
      spent[:cpu_ns] += cpu_ns - cpu
      spent[:visits] += 1
    end

    def wall_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    def cpu_ns = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)

    # How much one long call has to do, found by trying, and never under the profiler.
    def prepare
      budget_ns = @pass_ns * SECTIONS.fetch("one_long_call") / 100
      trial = Array.new(50_000) { rand }
      start = wall_ns
      trial.sort
      @unsorted = Array.new([(trial.size * (budget_ns / (wall_ns - start).to_f) * 0.8).round, 1].max) { rand }
    end

    # --- the sections: each takes the time at which to end ------------------------------------------------------

    def heavy(end_ns)
      x = 1
      while wall_ns < end_ns
        i = 0
        while i < 3000
          x = (x * 31 + i) & 0xffff
          i += 1
        end
      end
    end

    def middle(end_ns)
      x = 1.5
      while wall_ns < end_ns
        i = 0
        while i < 3000
          x = x * 1.0000001 + 0.5
          i += 1
        end
      end
    end

    def light(end_ns)
      table = [3, 1, 4, 1, 5, 9, 2, 6]
      x = 0
      while wall_ns < end_ns
        i = 0
        while i < 3000
          x = (x + table[(x + i) & 7]) & 0xff
          i += 1
        end
      end
    end

    def slight(end_ns)
      a = 0
      b = 1
      while wall_ns < end_ns
        i = 0
        while i < 3000
          a, b = b, (a + b) & 0xffff
          i += 1
        end
      end
    end

    # The one section that does not look at the clock: its size was fitted to the budget.
    def one_long_call(_end_ns)
      @unsorted.sort
    end

    def bignum_power(end_ns)
      x = 3
      x = 3 | (3**20_000).bit_length & 7 while wall_ns < end_ns
      x
    end

    def allocate(end_ns)
      while wall_ns < end_ns
        500.times { |i| @kept << { id: i, name: "object #{i}", list: [i, i + 1] } }
        @kept.clear if @kept.size > 50_000
      end
    end

    def doze(end_ns)
      left_ns = end_ns - wall_ns
      sleep(left_ns / 1e9) if left_ns.positive?
    end

    def tiny_calls(end_ns)
      x = 0
      while wall_ns < end_ns
        i = 0
        while i < 500
          x = tiny_a(x, i)
          i += 1
        end
      end
    end

    def tiny_a(x, i) = tiny_b(x + 1) ^ i
    def tiny_b(x) = tiny_c(x) & 0xffff
    def tiny_c(x) = x.succ
  end
end

puts JSON.pretty_generate(Programs::Truth.new(Float(ARGV.fetch(0, "2"))).run) if $PROGRAM_NAME == __FILE__
