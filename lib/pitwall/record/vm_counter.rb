# frozen_string_literal: true

module Pitwall
  module Record
    # A counter that the VM keeps of its caches or of its compiled code.
    #
    # name:   "class_serial"; "yjit_invalidation_count" is the key invalidation_count of RubyVM::YJIT.runtime_stats
    # title:  "class serials (method caches emptied)"
    # short:  "serials", head of a column
    # rubies: which Rubies have it
    # part:   the member of CacheChange with the counter's increase; nil: it can't be blamed on a line
    # means:  what an increase of 1 means
    # jit:    "yjit" or "zjit"; nil: RubyVM.stat has it
    # unit:   "count", or "ns"
    VMCounter = Struct.new(:name, :title, :short, :rubies, :part, :means, :jit, :unit, keyword_init: true)

    # The vocabulary of counters, of all Rubies. `bench`, `compare`, requests and tests count them. `caches` finds their
    # lines. bench_child/counters.rb and collect/vm_counters.rb read them, and know their keys by patterns.
    VM_COUNTERS = [
      { name: "constant_cache_misses", title: "constant cache misses", short: "misses", rubies: "3.2 and newer",
        means: "a constant was looked up by name, because its inline cache was empty" },
      { name: "constant_cache_invalidations", title: "constant cache invalidations", short: "constants",
        rubies: "3.2 and newer", part: :constants,
        means: "a constant of that name was set, removed or mixed in, and one inline cache was emptied" },
      { name: "class_serial", title: "class serials (method caches emptied)", short: "serials", rubies: "up to 3.1",
        part: :classes, means: "a class got a new number: it was made, or its ancestors changed" },
      { name: "global_constant_state", title: "global constant state", short: "constants", rubies: "up to 3.1",
        part: :constants, means: "all inline caches of constants were emptied" },
      { name: "global_cvar_state", title: "class variable caches emptied", short: "class vars", rubies: "all",
        part: :class_variables, means: "all inline caches of class variables were emptied" },
      { name: "next_shape_id", title: "object shapes made", short: "shapes", rubies: "3.2 and newer", part: :shapes,
        means: "an object got instance variables in an order that no object had before" },
      { name: "shape_cache_size", title: "shape cache entries", short: "shape cache", rubies: "3.3 and newer",
        means: "a shape with several successors was put into the tree's cache" },
      *{ "invalidation_count" => "compiled blocks discarded",
         "invalidate_method_lookup" => "blocks discarded: a method changed",
         "invalidate_bop_redefined" => "blocks discarded: a basic operator was redefined",
         "invalidate_ractor_spawn" => "blocks discarded: a Ractor began",
         "invalidate_constant_state_bump" => "blocks discarded: a constant changed",
         "invalidate_constant_ic_fill" => "blocks discarded: a constant's cache was filled",
         "invalidate_no_singleton_class" => "blocks discarded: a singleton class was made",
         "invalidate_ep_escape" => "blocks discarded: a block's variables were captured",
         "invalidate_everything" => "all blocks discarded (tracing)" }.map do |key, means|
        { name: "yjit_#{key}", title: "YJIT: #{means}", short: key, rubies: "with YJIT, 3.3 and newer", means: means,
          jit: "yjit" }
      end,
      *{ "side_exit_count" => "exits to the interpreter", "total_exit_count" => "returns and exits to the interpreter" }
        .map do |key, means|
        { name: "yjit_#{key}", title: "YJIT: #{means}", short: key, rubies: "with --yjit-stats", means: means,
          jit: "yjit" }
      end,
      { name: "zjit_invalidation_time_ns", title: "ZJIT: time of discarding code", short: "invalidation time",
        rubies: "with ZJIT, 4.0 and newer", means: "1 ns of discarding compiled code", jit: "zjit", unit: "ns" },
      { name: "zjit_side_exit_count", title: "ZJIT: exits to the interpreter", short: "side_exit_count",
        rubies: "with --zjit-stats", means: "exits to the interpreter", jit: "zjit" }
    ].to_h { |fields| [fields[:name], VMCounter.new(unit: "count", **fields).freeze] }.freeze

    # Names of the counters of RubyVM.stat.
    STAT_COUNTERS = VM_COUNTERS.each_value.reject(&:jit).map(&:name).freeze

    # The counters of RubyVM.stat that a Ruby with these metrics does not have. [] where none was read at all.
    # @api private
    #: (Array[String]) -> Array[String]
    def self.stat_counters_missing(metrics) = (metrics & STAT_COUNTERS).empty? ? [] : STAT_COUNTERS - metrics
  end
end
