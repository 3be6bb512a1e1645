# frozen_string_literal: true

require_relative "bare_build"

module Benchmarks
  # The profilers that a table may have. Each has a file in profilers/ that starts and stops it in the measured process.
  module Profilers
    # name => [file and class in profilers/, options for it, the gem it needs]
    CASES = {
      "none" => ["none", {}, nil],
      "bare_timer" => ["bare_timer", {}, nil],
      "bare_hook" => ["bare_hook", {}, nil],
      "pitwall_signal" => ["pitwall", { mode: "signal" }, nil],
      "pitwall_native" => ["pitwall", { mode: "signal", native: true }, nil],
      "pitwall_outside" => ["pitwall", { mode: "outside" }, nil],
      "pitwall_safepoint" => ["pitwall", { mode: "safepoint" }, nil],
      "pitwall_objects" => ["pitwall", { mode: "none", collectors: { "allocations" => {} } }, nil],
      "pitwall_objects_stacks" =>
        ["pitwall", { mode: "none", collectors: { "allocations" => { "stacks" => "1" } } }, nil],
      "pitwall_objects_growth" =>
        ["pitwall", { mode: "none", collectors: { "allocations" => { "growth" => "1" } } }, nil],
      "pitwall_objects_growth_100" =>
        ["pitwall", { mode: "none", collectors: { "allocations" => { "growth" => "1", "one_in" => "100" } } }, nil],
      "pitwall_objects_bursts" =>
        ["pitwall", { mode: "none", collectors: { "allocations" => { "bursts" => "1", "one_in" => "50" } } }, nil],
      "pitwall_syscalls" => ["pitwall", { mode: "none", collectors: { "syscalls" => { "stacks" => "1" } } }, nil],
      "object_space" => ["object_space", {}, nil],
      "stackprof_objects" => ["stackprof", { mode: "object", every: 1 }, "stackprof"],
      "vernier_objects" => ["vernier", { every: 1 }, "vernier"],
      "trace_wall" => ["trace", { cpu: false, objects: false }, nil],
      "trace_cpu" => ["trace", { objects: false }, nil],
      "trace" => ["trace", {}, nil],
      "trace_bytes" => ["trace", { bytes: true }, nil],
      "ruby_prof" => ["ruby_prof", {}, "ruby-prof"],
      "stackprof_wall" => ["stackprof", { mode: "wall" }, "stackprof"],
      "stackprof_cpu" => ["stackprof", { mode: "cpu" }, "stackprof"],
      "vernier" => ["vernier", {}, "vernier"],
      "pf2_wall" => ["pf2", { mode: "wall" }, "pf2"],
      "pf2_cpu" => ["pf2", { mode: "cpu" }, "pf2"]
    }.freeze
    # pf2 takes whole milliseconds.
    LEAST_INTERVAL_NS = { "pf2_wall" => 1_000_000, "pf2_cpu" => 1_000_000 }.freeze
    ROOT = File.expand_path("../..", __dir__)
    private_constant :LEAST_INTERVAL_NS, :ROOT

    module_function

    def offers?(name, interval_ns) = interval_ns >= LEAST_INTERVAL_NS.fetch(name, 0)

    # Why a profiler cannot run here, or nil.
    #: (String, Peers) -> String?
    def missing(name, peers)
      file, _options, gem = CASES.fetch(name)
      return peers.missing(gem) if gem
      return BareBuild.failure if file.start_with?("bare_")
      return pitwall_missing if %w[pitwall trace].include?(file)

      nil
    end

    # A figure of an older build would be a figure of nothing.
    def pitwall_missing
      require_relative "../../script/checkout" # here, as the measured process has no use for it
      "not built from these sources: run script/setup" unless Checkout.extension_current?
    end

    # @param root [String] the checkout of Pitwall to load
    #: (String, Peers, ?root: String) -> Array[String]
    def load_paths(name, peers, root: ROOT)
      file, _options, gem = CASES.fetch(name)
      return peers.paths(gem) if gem

      return [BareBuild::TARGET] if file.start_with?("bare_")

      %w[pitwall trace].include?(file) ? [File.join(root, "lib")] : []
    end

    # In the measured process: the profiler, loaded and not started.
    #: (String, interval_ns: Integer, out: String?) -> untyped
    def load(name, interval_ns:, out:)
      file, options, = CASES.fetch(name)
      require_relative "profilers/#{file}"
      class_name = "#{file.split("_").map(&:capitalize).join}Case"
      Profilers.const_get(class_name).new(interval_ns: interval_ns, out: out, **options)
    end
  end
end
