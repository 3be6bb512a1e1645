# frozen_string_literal: true

module Pitwall
  module Analyse
    module Findings
      # What the lines of the application allocated.
      module Sites
        # place → {class → sum of the block's value}
        #: (Evidence) { (Record::Site, Rational) -> Integer } -> Hash[[String, Integer, String], Hash[String, Integer]]
        def self.sums(evidence)
          evidence.segments.each_with_object(Hash.new { |all, place| all[place] = Hash.new(0) }) do |segment, sums|
            next unless segment.allocation_totals

            scale = Allocations.scale(segment)
            segment.sites.each do |site|
              next if !site.program? || evidence.loading?(segment, site.node)

              path, line, method = evidence.place(segment, site.node)
              sums[[path, line, method.name]][site.class_name] += yield(site, scale.call(site)) if path
            end
          end
        end

        #: (Hash[untyped, Hash[String, Integer]]) -> [[String, Integer, String], Hash[String, Integer]]?
        def self.most(sums) = sums.max_by { |place, classes| [classes.each_value.sum, place.map(&:to_s)] }

        # The class that has most.
        #: (Hash[String, Integer]) -> String
        def self.first(classes) = classes.max_by { |name, sum| [sum, name] }.first

        # Where times are known, they come first.
        #: (Evidence, Integer, Integer) -> Float
        def self.impact(evidence, part, whole) = part.fdiv(whole) * (evidence.cpu.zero? ? 1 : 0.3)
      end
      private_constant :Sites

      # A line that allocates a large part of all objects.
      module AllocatingLine
        SHARE = 0.3
        # Fewer than these cost no time worth speaking of.
        LEAST = 20_000
        private_constant :SHARE, :LEAST

        #: (Evidence, Array[Finding]) -> Array[Finding]
        def self.findings(evidence, _found)
          allocations = Allocations.new(evidence.segments)
          return [] unless allocations.any?

          total = allocations.objects
          place, classes = Sites.most(Sites.sums(evidence) { |site, scale| (site.count * scale).round })
          objects = classes.to_h.each_value.sum
          return [] if place.nil? || objects < LEAST || objects < total * SHARE

          [evidence.finding(:allocating_line, place, objects, whole: total, of: :objects, subject: Sites.first(classes),
                            view: ["--view", "allocations"], impact: Sites.impact(evidence, objects, total))]
        end
      end

      # Objects of one line that stay, and become more and more.
      module Growth
        SHARE = 0.1
        # Fewer than these need not be a leak: caches of the VM fill slowly.
        LEAST = 100
        private_constant :SHARE, :LEAST

        #: (Evidence, Array[Finding]) -> Array[Finding]
        def self.findings(evidence, _found)
          rows = ObjectGrowth.new(evidence.segments).rows
          total = rows.sum { |row| row.bytes.to_i }
          by_place = rows.group_by { |row| evidence.place(row.segment, row.node) }.reject { |place, _| place.nil? }
          place, grown = by_place.max_by { |at, found| [found.sum { |row| row.bytes.to_i }, found.sum(&:objects), at.first(2).map(&:to_s)] }
          return [] if place.nil? || grown.sum(&:objects) < LEAST

          bytes = grown.sum { |row| row.bytes.to_i }
          return [] if bytes < total * SHARE

          path, line, method = place
          others = by_place.except(place).sort_by { |at, found| [-found.sum { |row| row.bytes.to_i }, *at.first(2)] }.map { |at, _| at.first(2) }
          figures = { objects: grown.sum(&:objects), others: others.uniq - [place.first(2)], objects_per_minute: grown.sum { |row| row.per_minute.point }.round,
                      bytes_per_minute: grown.sum { |row| row.bytes_per_minute.to_i } }
          [evidence.finding(:growth, [path, line, method.name], bytes, whole: total, of: :growth, subject: grown.first.class_name,
                            figures: figures, view: ["--view", "growth"], impact: Float::INFINITY)] # it was asked for
        end
      end

      # Objects of one line that still lived at the end.
      module Retained
        # What leaks has parts, each from a line of its own.
        SHARE = 0.2
        OTHERS = 0.1
        LEAST_BYTES = 1 << 20
        private_constant :SHARE, :OTHERS, :LEAST_BYTES

        #: (Evidence, Array[Finding]) -> Array[Finding]
        def self.findings(evidence, _found)
          allocations = Allocations.new(evidence.segments)
          return [] unless allocations.any? && allocations.retained_bytes?

          total = allocations.total(:retained_bytes)
          sums = Sites.sums(evidence) { |site, scale| (site.retained_bytes.to_i * scale).round }
          place, classes = Sites.most(sums)
          bytes = classes.to_h.each_value.sum
          return [] if place.nil? || bytes < LEAST_BYTES || bytes < total * SHARE

          others = sums.except(place).transform_values { |found| found.each_value.sum }.select { |_, sum| sum >= total * OTHERS }
          others = others.sort_by { |at, sum| [-sum, *at.first(2)] }.map { |at, _| at.first(2) }.uniq
          [evidence.finding(:retained, place, bytes, whole: total, of: :bytes, subject: Sites.first(classes), figures: { others: others },
                            view: ["--view", "allocations", "--retained"],
                            impact: Sites.impact(evidence, bytes, total))]
        end
      end
    end
  end
end
