# frozen_string_literal: true

require "json"

# Four threads of known shares under the GVL, and their ground truth.
#
#   ruby benchmarks/programs/truth_threads.rb [SECONDS]     # default 2; prints the ground truth as JSON
#
# Each thread turns between a method that computes until it has used its part of *CPU* time, measured by the
# thread's own clock, and a method that sleeps to the end of the turn. Together they want four fifths of one core, so
# they wait for one another. The wall time of a computing method is its CPU time plus its wait for the GVL. Both are
# known.
module Programs
  class TruthThreads
    # Method that computes => [method that sleeps, the part of the run's time to compute, in percent]
    WORKERS = {
      "compute_most" => ["rest_little", 36],
      "compute_much" => ["rest_some", 24],
      "compute_less" => ["rest_more", 14],
      "compute_least" => ["rest_most", 6]
    }.freeze
    SECTIONS = WORKERS.flat_map { |busy, (idle, _share)| [busy, idle] }.freeze
    TURN_NS = 250_000_000

    # The method at the root of each thread that counts; the main thread only waits for them.
    ROOT = "worker"

    def initialize(seconds)
      @turns = [(seconds * 1e9 / TURN_NS).round, 1].max
      @turn_ns = (seconds * 1e9 / @turns).round
    end

    #: () -> Hash
    def run
      wall = wall_ns
      process_cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
      start_ns = wall + 1_000_000
      threads = WORKERS.map { |busy, (idle, share)| Thread.new { worker(start_ns, busy, idle, share) } }
      threads = threads.map(&:value)
      { program: "truth_threads", root: ROOT, wall_ns: wall_ns - wall,
        cpu_ns: Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond) - process_cpu, threads: threads }
    end

    private

    def worker(start_ns, busy, idle, share)
      begun = [wall_ns, cpu_ns]
      spent = [busy, idle].to_h { |name| [name, { wall_ns: 0, cpu_ns: 0, visits: 0 }] }
      @turns.times do |turn|
        visit(busy, spent, cpu_ns + (@turn_ns * share / 100))
        visit(idle, spent, start_ns + ((turn + 1) * @turn_ns))
      end
      { name: busy, native_thread_id: Thread.current.native_thread_id,
        wall_ns: wall_ns - begun[0], cpu_ns: cpu_ns - begun[1],
        sections: spent }
    end

    def visit(name, spent, end_ns)
      cpu = cpu_ns
      wall = wall_ns
      send(name, end_ns)
      section = spent.fetch(name)
      section[:wall_ns] += wall_ns - wall
      section[:cpu_ns] += cpu_ns - cpu
      section[:visits] += 1
    end

    def wall_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    def cpu_ns = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)

    # Methods of their own and not one with an argument: a profile tells methods apart, not arguments.
    WORKERS.each do |busy, (idle, _share)|
      class_eval <<~RUBY, __FILE__, __LINE__ + 1
        def #{busy}(end_cpu_ns)
          x = 1
          while cpu_ns < end_cpu_ns
            i = 0
            while i < 5000
              x = (x * 31 + i) & 0xffff
              i += 1
            end
          end
        end

        def #{idle}(end_wall_ns)
          left_ns = end_wall_ns - wall_ns
          sleep(left_ns / 1e9) if left_ns.positive?
        end
      RUBY
    end
  end
end

puts JSON.pretty_generate(Programs::TruthThreads.new(Float(ARGV.fetch(0, "2"))).run) if $PROGRAM_NAME == __FILE__
