# frozen_string_literal: true

module Pitwall
  module Analyse
    module Findings
      # Garbage collection takes a large part of the running time.
      # The line is the one with most charged collection time. If objects were not followed, it is the line that
      # collections interrupted most.
      module Garbage
        # Smallest share of the running time.
        SHARE = 0.15
        private_constant :SHARE

        #: (Evidence, Array[Finding]) -> Array[Finding]
        def self.findings(evidence, _found)
          timeline = GCTimeline.new(evidence.segments)
          boot, boot_gc = evidence.boot
          spent = timeline.total_ns - own(evidence) - boot_gc
          ran = evidence.running.positive? ? evidence.running - boot : timeline.wall_ns
          return [] if spent < LEAST_NS || spent < ran * SHARE

          charged = charged(evidence)
          place, = (charged.empty? ? interrupted(evidence) : charged).max_by { |key, ns| [ns, key.first(2)] }
          found = evidence.finding(:garbage, place || [nil, 0, nil], spent, whole: [ran, spent].max, of: :running,
                                   figures: { runs: timeline.count, charged: charged.any?, booted: boot.positive? },
                                   view: ["--view", charged.any? ? "gc-cost" : "gc"])
          [found]
        end

        def self.charged(evidence)
          evidence.segments.each_with_object(Hash.new(0)) do |segment, sums|
            segment.sites.each do |site|
              path, line, method = evidence.place(segment, site.node)
              sums[[path, line, method.name]] += site.gc_ns if path && site.gc_ns.positive?
            end
          end
        end

        # Time of the collections before and after which Pitwall counts retained objects, in ns.
        def self.own(evidence)
          recorded = evidence.segments.select(&:allocation_totals)
          recorded.empty? ? 0 : Allocations.new(recorded).special(Record::Site::PITWALL, :gc_ns)
        end

        def self.interrupted(evidence)
          lines = evidence.lines.select { |line| line.gc.positive? && !evidence.boot?(line) }
          lines.to_h { |line| [line.place, line.gc] }
        end
        private_class_method :charged, :interrupted, :own
      end
    end
  end
end
