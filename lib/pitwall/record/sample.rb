# frozen_string_literal: true

module Pitwall
  module Record
    # One case of a benchmark file, or a whole command.
    #
    # index: position in the file · block: number of its Benchmark.ips or Pitwall.bench · name: "join n=10"
    # label: "join" · params: {"n" => "10"} · flags: what the block asked for ("compare", "growth:n")
    Case = Struct.new(:index, :block, :block_name, :name, :label, :params, :flags, keyword_init: true)

    # What one process measured of one case: `bench` and `compare` take a fresh process for every sample, because
    # nearly all of a benchmark's variance lies between processes.
    #
    # side:      name of the side ("A", or a label such as "main"); "" where nothing is compared
    # name:      the case ("join", "join n=100"); for a whole command, the command line
    # block:     Integer; samples of one block ran right after another, one of each side (and case), in random order
    # order:     Integer; position within its block
    # values:    metric → Array of Floats or Integers, one a batch of iterations, each *per iteration*; one value only where
    #            the process is the unit (a whole command, or counters read at its ends). Metrics: see METRICS
    # iterations: Integer, timed iterations in all
    # first_ns:  what the very first call took (nil for commands)
    # warmup:    Integer, iterations before the timed ones
    # digest:    what the case returned, digested (nil where it isn't asked)
    # notes:     Array of Symbols: what the process noticed of itself (:unsteady, :threads_left, :coarse_clock…)
    Sample = Struct.new(:side, :name, :block, :order, :values, :iterations, :first_ns, :warmup, :digest, :notes, keyword_init: true) do
      # @return [Array<Numeric>, nil] what was measured of a metric
      def [](metric) = metric.is_a?(String) ? values[metric] : super
    end

    # What is measured: `unit` ns, bytes or count; `kind` :clock (noisy) or :count (exact where all samples agree).
    # For all of them less is better.
    Metric = Struct.new(:name, :unit, :kind, :title)

    METRICS = [
      ["wall", "ns", :clock, "wall time"],
      ["cpu", "ns", :clock, "CPU time"],
      ["user", "ns", :clock, "user CPU time"],
      ["system", "ns", :clock, "system CPU time"],
      ["task_clock", "ns", :clock, "task clock"],
      ["gc_time", "ns", :clock, "GC time"],
      ["objects", "count", :count, "objects allocated"],
      ["bytes", "bytes", :count, "bytes in heap slots"],
      ["gc_runs", "count", :count, "GC runs"],
      ["max_rss", "bytes", :clock, "peak memory (RSS)"],
      ["minor_faults", "count", :count, "page faults without IO"],
      ["major_faults", "count", :count, "page faults with IO"],
      ["voluntary_switches", "count", :count, "context switches, voluntary"],
      ["involuntary_switches", "count", :count, "context switches, involuntary"],
      ["constant_cache_misses", "count", :count, "constant cache misses"],
      ["constant_cache_invalidations", "count", :count, "constant cache invalidations"],
      ["class_serial", "count", :count, "class serials (method caches emptied)"],
      ["global_constant_state", "count", :count, "global constant state"],
      ["global_cvar_state", "count", :count, "class variable caches emptied"],
      ["next_shape_id", "count", :count, "object shapes made"],
      ["shape_cache_size", "count", :count, "shape cache entries"],
      ["instructions", "count", :count, "instructions"],
      ["fs_calls", "count", :count, "file-system calls"],
      ["retained", "count", :count, "objects retained at the end"],
      ["retained_bytes", "bytes", :count, "bytes retained at the end"]
    ].to_h { |name, unit, kind, title| [name, Metric.new(name, unit, kind, title).freeze] }.freeze
  end
end
