# frozen_string_literal: true

require_relative "json"

module Pitwall
  module Collect
    # What it costs to define a method on the modules and classes that got methods: how far a definition reaches, and
    # how long it takes. Measured in the program, when its recording has ended. It calls no method of the program: a
    # module may have its own `name` or `ancestors`.
    # @api private
    module Definitions
      ANCESTORS = Module.instance_method(:ancestors)
      DEFINE = Module.instance_method(:define_method)
      REMOVE = Module.instance_method(:remove_method)
      SUPERCLASS = Class.instance_method(:superclass)
      METHOD = Kernel.instance_method(:method)
      FROZEN = Kernel.instance_method(:frozen?)
      # The most modules that are listed and measured.
      MOST = 200
      # Definitions in a batch, and batches. The fastest batch counts.
      BATCH = 20
      BATCHES = 5
      NAMES = Array.new(BATCH) { |number| :"pitwall_probe_#{number}" }.freeze
      # Ruby calls these hooks at a definition and at its removal.
      HOOKS = %i[method_added method_removed].freeze
      private_constant :ANCESTORS, :DEFINE, :REMOVE, :SUPERCLASS, :METHOD, :FROZEN, :MOST, :BATCH, :BATCHES, :NAMES,
                       :HOOKS

      # modules:  other modules and classes that have the methods
      # carriers: the modules among their ancestors that have the methods, too; 1 for a module or class without
      # entries:  places in the ancestries that Ruby visits at a definition
      # repeated: entries beyond the first in one ancestry
      Reach = Struct.new(:modules, :carriers, :entries, :repeated)
      private_constant :Reach

      class << self
        # @param defined [Array<[Module, String, Integer]>] module, its name in the recording, methods defined on it
        # @return [String] CHDF of doc/record-format.md
        #: (Array[untyped]) -> String
        def dump(defined)
          chosen = defined.max_by(MOST) { |_, _, count| count }
          reaches = reaches(chosen.map(&:first))
          alone_ns = time(Module.new) # first, so that no row has the constant caches of this code
          rows = chosen.map { |mod, name, count| row(mod, name, count, reaches[mod]) }
          JSON.dump({ "alone_ns" => alone_ns, "modules" => rows, "left_out" => defined.size - chosen.size })
        end

        private

        def row(mod, name, count, reach)
          reason = reason_against(mod)
          before = RubyVM.stat
          { "name" => name, "kind" => Class === mod ? "class" : "module", "defined" => count,
            "reaches" => reach.modules, "paths" => reach.carriers, "entries" => reach.entries,
            "repeated" => reach.repeated, "ns" => (time(mod) unless reason), "not_measured" => reason,
            "counters" => reason ? {} : increase(before, RubyVM.stat) }
        end

        # The increase of the VM's counters a definition.
        def increase(before, after)
          after.to_h { |name, value| [name, ((value - before[name]) / (BATCH * BATCHES).to_f).round(2)] }
        end

        # Why a definition for a measurement would change what the program does.
        def reason_against(mod)
          return "frozen" if FROZEN.bind_call(mod)

          "has hooks of its own" if HOOKS.any? { |hook| METHOD.bind_call(mod, hook).source_location }
        end

        # ns of a definition. Its removal is not timed.
        def time(mod)
          body = proc {}
          best = Array.new(BATCHES) do
            from = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
            NAMES.each { |name| DEFINE.bind_call(mod, name, &body) }
            to = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
            REMOVE.bind_call(mod, *NAMES)
            to - from
          end
          best.min / BATCH
        end

        def reaches(targets)
          found = {}.compare_by_identity # before the first module is stored: a module may have its own `hash`
          targets.each { |mod| found[mod] = Reach.new(0, 0, 0, 0) }
          carried = carried_by(found)
          ObjectSpace.each_object(Module) { |other| add(found, carried, other, ANCESTORS.bind_call(other)) }
          found
        end

        # Module → those of `found` that are among its ancestors.
        def carried_by(found)
          carried = {}.compare_by_identity
          ObjectSpace.each_object(Module) do |mod|
            next if Class === mod

            list = ANCESTORS.bind_call(mod).select { |one| found.key?(one) && !one.equal?(mod) }
            carried[mod] = list unless list.empty?
          end
          carried
        end

        def add(found, carried, other, ancestors)
          own = ancestors.size - (Class === other ? from_superclass(other) : 0)
          seen = Hash.new(0).compare_by_identity
          ancestors.each_with_index do |one, at|
            reach = found[one] or next
            next if one.equal?(other)

            reach.entries += 1 if at < own
            reach.modules += 1 if (seen[one] += 1) == 1
            reach.repeated += 1 if seen[one] > 1 && at < own
          end
          add_paths(found, carried, other, ancestors, seen)
        end

        def add_paths(found, carried, other, ancestors, seen)
          return if seen.empty?

          carriers = Hash.new(0).compare_by_identity
          ancestors.each { |one| carried[one]&.each { |mod| carriers[mod] += 1 } unless one.equal?(other) }
          seen.each_key { |mod| found[mod].carriers += [carriers[mod], 1].max }
        end

        # How many ancestors a class has from its superclass. They are the last ones.
        def from_superclass(mod)
          parent = SUPERCLASS.bind_call(mod)
          parent ? ANCESTORS.bind_call(parent).size : 0
        end
      end
    end
  end
end
