# frozen_string_literal: true

require "pitwall/record/vm_counter"

module Pitwall
  module Record
    # One case of a benchmark file, or a whole command.
    #
    # index:  position in the file
    # block:  number of the case's Benchmark.ips or Pitwall.bench block
    # name:   "join n=10"
    # label:  "join"
    # params: {"n" => "10"}
    # flags:  settings of the block ("compare", "growth:n")
    Case = Struct.new(:index, :block, :block_name, :name, :label, :params, :flags, keyword_init: true)

    # Measurements of one case in one process. `bench` and `compare` start a new process for every sample, because
    # nearly all of a benchmark's variance lies between processes.
    #
    # side:       name of the side ("A", or a label such as "main"); "" where nothing is compared
    # name:       the case ("join", "join n=100"); of a whole command, the command line
    # block:      Integer; the samples of a block ran one after the other, one of each side (and case), in random order
    # order:      Integer; position within the block
    # values:     metric (see METRICS) → Array of Floats or Integers, one for each batch of iterations, per iteration.
    #             One value where the process is the unit: of a whole command, and of counters read at start and end
    # iterations: Integer; timed iterations of all batches
    # first_ns:   duration of the first call; nil for commands
    # warmup:     Integer; iterations before the timed ones
    # digest:     digest of the case's return value; nil where none was asked for
    # notes:      Array of Symbols; remarks of the process (:unsteady, :threads_left, :coarse_clock…)
    Sample = Struct.new(:side, :name, :block, :order, :values, :iterations, :first_ns, :warmup, :digest, :notes,
                        keyword_init: true) do
      # @return [Array<Numeric>, nil] values of a metric
      def [](metric) = metric.is_a?(String) ? values[metric] : super
    end

    # Something that is measured. Less is better for every metric.
    #
    # unit: "ns", "bytes" or "count"
    # kind: :clock (noisy) or :count (exact if all samples agree)
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
      *VM_COUNTERS.each_value.map do |counter|
        [counter.name, counter.unit, counter.unit == "ns" ? :clock : :count, counter.title]
      end,
      ["instructions", "count", :count, "instructions"],
      ["fs_calls", "count", :count, "file-system calls"],
      ["retained", "count", :count, "objects retained at the end"],
      ["retained_bytes", "bytes", :count, "bytes retained at the end"]
    ].to_h { |name, unit, kind, title| [name, Metric.new(name, unit, kind, title).freeze] }.freeze
  end
end
