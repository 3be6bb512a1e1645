# frozen_string_literal: true

module Pitwall
  module Bench
    # What the kernel and the VM have counted for this process so far.
    module Counters
      PEAK = "max_rss"

      class << self
        #: () -> Hash[String, Integer]
        def read
          kernel.merge(vm)
        end

        # What happened in between; a peak is as of the later one.
        def difference(before, after)
          after.to_h { |name, value| [name, name == PEAK ? value : value - before.fetch(name, 0)] }
        end

        private

        def kernel
          status = File.read("/proc/self/status")
          # After the name, which is in brackets and may hold anything: fields 3 and on.
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

          RubyVM.stat.transform_keys(&:to_s)
        end
      end
    end
  end
end
