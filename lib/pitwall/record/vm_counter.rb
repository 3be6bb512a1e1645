# frozen_string_literal: true

module Pitwall
  module Record
    # A counter of the VM's caches, as RubyVM.stat has it.
    #
    # name:   "class_serial"
    # title:  "class serials (method caches emptied)"
    # rubies: which Rubies have it
    # part:   the member of CacheChange with the counter's increase; nil: it can't be blamed on a line
    # means:  what an increase of 1 means
    VMCounter = Struct.new(:name, :title, :rubies, :part, :means, keyword_init: true)

    # Of all Rubies. `bench` and `compare` count them, `caches` blames them.
    VM_COUNTERS = [
      VMCounter.new(name: "constant_cache_misses", title: "constant cache misses", rubies: "3.2 and newer",
                    means: "a constant was looked up by name, because its inline cache was empty"),
      VMCounter.new(name: "constant_cache_invalidations", title: "constant cache invalidations",
                    rubies: "3.2 and newer", part: :constants,
                    means: "a constant of that name was set, removed or mixed in, and one inline cache was emptied"),
      VMCounter.new(name: "class_serial", title: "class serials (method caches emptied)", rubies: "up to 3.1",
                    part: :classes, means: "a class got a new number: it was made, or its ancestors changed"),
      VMCounter.new(name: "global_constant_state", title: "global constant state", rubies: "up to 3.1",
                    part: :constants, means: "all inline caches of constants were emptied"),
      VMCounter.new(name: "global_cvar_state", title: "class variable caches emptied", rubies: "all",
                    part: :class_variables, means: "all inline caches of class variables were emptied"),
      VMCounter.new(name: "next_shape_id", title: "object shapes made", rubies: "3.2 and newer", part: :shapes,
                    means: "an object got instance variables in an order that no object had before"),
      VMCounter.new(name: "shape_cache_size", title: "shape cache entries", rubies: "3.3 and newer",
                    means: "a shape with several successors was put into the tree's cache")
    ].to_h { |counter| [counter.name, counter.freeze] }.freeze
  end
end
