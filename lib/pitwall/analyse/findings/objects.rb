# frozen_string_literal: true

module Pitwall
  module Analyse
    module Findings
      # Sums over the allocation sites of the application's lines.
      module Sites
        # Place → {class → sum of the block's values}. Leaves out objects that were allocated while files were loaded.
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

        # The place with the largest sum, and its classes.
        #: (Hash[untyped, Hash[String, Integer]]) -> [[String, Integer, String], Hash[String, Integer]]?
        def self.most(sums) = sums.max_by { |place, classes| [classes.each_value.sum, place.map(&:to_s)] }

        # The class with the largest sum.
        #: (Hash[String, Integer]) -> String
        def self.first(classes) = classes.max_by { |name, sum| [sum, name] }.first

        # Impact of a share of objects or bytes. It is reduced if times are known, because times matter more.
        #: (Evidence, Integer, Integer) -> Float
        def self.impact(evidence, part, whole) = part.fdiv(whole) * (evidence.cpu.zero? ? 1 : 0.3)
      end
      private_constant :Sites

      # A line allocates a large part of all objects.
      module AllocatingLine
        # Smallest share of the objects.
        SHARE = 0.3
        # Fewer objects do not take noticeable time.
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

      # The number of living objects of a line keeps growing.
      module Growth
        # Smallest share of the growth in bytes.
        SHARE = 0.1
        # Fewer objects may be caches of the VM, which fill slowly.
        LEAST = 100
        private_constant :SHARE, :LEAST

        #: (Evidence, Array[Finding]) -> Array[Finding]
        def self.findings(evidence, _found)
          rows = ObjectGrowth.new(evidence.segments).rows
          total = bytes(rows)
          by_place = rows.group_by { |row| evidence.place(row.segment, row.node) }.reject { |place, _| place.nil? }
          place, grown = by_place.max_by do |at, group|
            [bytes(group), group.sum(&:objects), at.first(2).map(&:to_s)]
          end
          return [] if place.nil? || grown.sum(&:objects) < LEAST

          bytes = bytes(grown)
          return [] if bytes < total * SHARE

          path, line, method = place
          others = by_place.except(place).sort_by { |at, group| [-bytes(group), *at.first(2)] }
          others = others.map { |at, _| at.first(2) }.uniq - [place.first(2)]
          figures = { objects: grown.sum(&:objects), others: others,
                      objects_per_minute: grown.sum { |row| row.per_minute.point }.round,
                      bytes_per_minute: grown.sum { |row| row.bytes_per_minute.to_i } }
          [evidence.finding(:growth, [path, line, method.name], bytes, whole: total, of: :growth,
                            subject: grown.first.class_name, figures: figures, view: ["--view", "growth"],
                            impact: Float::INFINITY)] # the user asked for growth
        end

        def self.bytes(rows) = rows.sum { |row| row.bytes.to_i }
        private_class_method :bytes
      end

      # Objects of a line were still alive at the end.
      module Retained
        # Smallest share of the retained bytes. A leak often has several parts, each from a line of its own.
        SHARE = 0.2
        # Smallest share of further lines.
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

          totals = sums.except(place).transform_values { |classes_of| classes_of.each_value.sum }
          others = totals.select { |_, sum| sum >= total * OTHERS }
          others = others.sort_by { |at, sum| [-sum, *at.first(2)] }.map { |at, _| at.first(2) }.uniq
          [evidence.finding(:retained, place, bytes, whole: total, of: :bytes, subject: Sites.first(classes),
                            figures: { others: others }, view: ["--view", "allocations", "--retained"],
                            impact: Sites.impact(evidence, bytes, total))]
        end
      end
    end
  end
end
