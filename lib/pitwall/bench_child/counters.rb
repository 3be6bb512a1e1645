# frozen_string_literal: true

module Pitwall
  module Bench
    # Reads the counters that the kernel and the VM keep for this process.
    module Counters
      PEAK = "max_rss"
      # Counters of the JIT compilers that are read: invalidations, and with --yjit-stats or --zjit-stats exits.
      OF_JIT = /\Ainvalidat|\A(?:side|total)_exit_count\z/.freeze

      class << self
        #: () -> Hash[String, Integer]
        def read
          kernel.merge(vm)
        end

        # The increase of each counter. A peak is the later reading.
        def difference(before, after)
          after.to_h { |name, value| [name, name == PEAK ? value : value - before.fetch(name, 0)] }
        end

        private

        def kernel
          status = File.read("/proc/self/status")
          # Fields 3 and on. The program's name in field 2 may contain spaces and brackets.
          fields = File.read("/proc/self/stat").rpartition(")").last.split
          { "minor_faults" => fields[7].to_i, "major_faults" => fields[9].to_i,
            "voluntary_switches" => status[/^voluntary_ctxt_switches:\s*(\d+)/, 1].to_i,
            "involuntary_switches" => status[/^nonvoluntary_ctxt_switches:\s*(\d+)/, 1].to_i,
            PEAK => status[/^VmHWM:\s*(\d+)/, 1].to_i * 1024 }
        rescue SystemCallError
          {} # not Linux
        end

        def vm
          return {} unless defined?(RubyVM) && RubyVM.respond_to?(:stat)

          RubyVM.stat.transform_keys(&:to_s).merge(jit("yjit", :YJIT, :runtime_stats), jit("zjit", :ZJIT, :stats))
        end

        # Integers of a JIT compiler that is enabled: {"yjit_invalidation_count" => 3}.
        def jit(prefix, name, reader)
          return {} unless RubyVM.const_defined?(name)

          jit = RubyVM.const_get(name)
          return {} unless jit.respond_to?(reader) && jit.respond_to?(:enabled?) && jit.enabled?

          found = jit.public_send(reader).to_h.select { |key, value| OF_JIT.match?(key) && value.is_a?(Integer) }
          found.transform_keys { |key| "#{prefix}_#{key}" }
        end
      end
    end
  end
end
