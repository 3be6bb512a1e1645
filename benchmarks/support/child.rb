# frozen_string_literal: true

# The measured process: one program under one profiler. Reads the job as JSON from standard input and prints what it
# measured as JSON. Work that is not to be measured runs before or after.
#
# job: profiler, interval_ns, program ("deep"), out (where the profiler writes its file, if it shall), and
#   measure "interleaved" with amount and pairs: the same work with and without the profiler in turns
#   measure "turns" with cases, amount and passes: the same work with each of several profilers and without, in turns
#   measure "once" with seconds, and amount (work to repeat for so long), or truth: true (the program knows its shares);
#   sites: true also asks where objects were allocated, leaves: true for methods' own CPU time,
#   roots: true for the outermost frames of stacks
#   measure "window" with amount and seconds: one profile, and when it began and ended
#   measure "ticks" with seconds, sleepers and busy (programs/standing.rb)
require "json"
require_relative "profilers"
require_relative "clocks"

job = JSON.parse($stdin.read, symbolize_names: true)
measure = job.fetch(:measure)
require_relative "measure_#{measure}"
require_relative "../programs/#{job.fetch(:program)}"
profiler = Benchmarks::Profilers.load(job.fetch(:profiler), interval_ns: job.fetch(:interval_ns, 0), out: job[:out])
program = Programs.const_get(job.fetch(:program).split("_").map(&:capitalize).join)
puts JSON.generate(Benchmarks.const_get("Measure#{measure.capitalize}").new(job, program, profiler).call)
