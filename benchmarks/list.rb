# frozen_string_literal: true

module Benchmarks
  # Every benchmark there is, in the order in which `benchmarks/run` takes them. A file below benchmarks/ that is
  # neither listed here nor part of the support fails test/benchmarks_test.rb.
  LIST = {
    "sampler/overhead" => "what a sample costs, beside the bare timer and the peers",
    "sampler/accuracy" => "how far shares are from the truth, wall and CPU, one thread and four",
    "sampler/outside" => "reading from outside: the leaves it sees beside those that signals see, " \
                         "and what a look costs",
    "sampler/stop_and_size" => "how long stopping takes and how large the file is",
    "native/overhead" => "what a sample with native frames costs, beside the bare timer and pf2",
    "native/completeness" => "how many native stacks reach the thread's start, on ten programs, beside pf2",
    "native/agreement" => "how far shares of functions are from those of `perf` on the same run",
    "allocations/overhead" => "what counting every object costs, exactly, with stacks and in bursts, beside the peers",
    "allocations/accuracy" => "how far counts in bursts are from those of every object",
    "allocations/memory" => "what counting 10,000,000 objects of 5,000 lines takes of memory",
    "tracer/overhead" => "what tracing every call costs, beside ruby-prof",
    "tracer/self_time" => "how far self times of calls are from what they cost without the tracer",
    "syscalls/overhead" => "what recording file-system calls costs a call and the start of a Rails application, " \
                           "beside strace",
    "caches/cost" => "what watching caches costs: counters, methods and lines; on two programs, and on the boot and " \
                     "the warm requests of a Rails application",
    "boot/cost" => "what recording what is loaded costs the start of a Rails application",
    "boot/fastboot" => "how long Rails applications take to start with the accelerator, beside bootsnap, and what it " \
                       "takes of memory and file-system calls",
    "queries/cost" => "what counting queries costs a query, with ActiveRecord and Sequel",
    "servers/puma" => "what continuous recording costs Puma at full load",
    "report/speed" => "time and memory of `pitwall report` on 1,000,000 samples",
    "page/speed" => "how large the HTML page of 1,000,000 samples is, how long it takes to open, " \
                    "how smoothly it zooms",
    "compare/error_rates" => "how often `pitwall compare` is wrong, and how soon it is right, " \
                             "beside benchmark-ips and hyperfine",
    "compare/commits" => "how often `pitwall compare --each` and `--bisect` name the slower commit, and how often a " \
                         "gate fails pull requests without effect and catches slower ones",
    "compare/harness_cost" => "what the loop of `pitwall bench` costs an iteration, beside benchmark-ips",
    "compare/live" => "how often a gate and `pitwall compare --each` are right about real processes on this machine",
    "compare/cached_start" => "how long `pitwall compare` of two revisions takes until it measures, " \
                              "the bundle being there",
    "compare/structure" => "how long the call paths of two recordings of 1,000,000 rows take to be compared",
    "history/change_points" => "how often `pitwall history` finds a step of 3% in 200 results, and sees one where " \
                               "there is none, beside e-divisive",
    "history/speed" => "how long every view of 100,000 results takes on SQLite",
    "allocations/prediction" => "what removing an allocating line saves, predicted and measured, " \
                                "on eight programs and four held out",
    "syscalls/log" => "how long `pitwall syscalls` takes for a log of 10,000,000 lines, beside the study's passes",
    "versions/cost" => "whether this version costs more than another one (--beside FOLDER): " \
                       "sampling, tracing, objects, system calls, reports"
  }.freeze
end
