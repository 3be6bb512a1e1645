# frozen_string_literal: true

module Pitwall
  module Analyse
    # On which modules and classes it is costly to define methods, and which lines pay for it.
    #
    # A definition on a module makes Ruby visit each place in an ancestry where the module stands. Before anything mixes
    # it in, there is none: such a definition is charged the time of a module that nothing mixes in. A later one
    # ("late") is charged the time measured at the end of the program. Fewer classes existed when it was made, so the
    # sum is an upper bound.
    class Definitions
      KINDS = %w[method_added method_aliased operator_redefined].freeze
      MIXED_IN = %w[module_included module_prepended object_extended].freeze
      private_constant :KINDS, :MIXED_IN

      # cost:        Record::DefinitionCost
      # definitions: methods defined on the module
      # late:        those after the module was first mixed in; of a class none
      # total_ns:    what they cost; nil: not measured
      Row = Struct.new(:cost, :definitions, :late, :total_ns, keyword_init: true)
      # A line that defines methods on modules of rows.
      Line = Struct.new(:path, :line, :definitions, :total_ns, :modules, keyword_init: true)

      # @return [Integer] ns of a definition on a module that nothing mixes in
      attr_reader :alone_ns

      #: (Array[Record::Segment], Caches) -> void
      def initialize(segments, caches)
        @segments = segments.select(&:alone_ns)
        @caches = caches
        @alone_ns = @segments.map(&:alone_ns).min
      end

      # Were definitions measured?
      #: () -> bool
      def any? = @segments.any?

      # The costliest first.
      #: () -> Array[Row]
      def rows
        @rows ||= all.group_by { |row, _| row.cost.name }.each_value.map { |found| joined(found.map(&:first)) }
                     .sort_by { |row| [-row.total_ns.to_i, -row.cost.entries, -row.definitions, row.cost.name] }
      end

      # The lines that pay most for definitions.
      #: () -> Array[Line]
      def lines
        @lines ||= all.flat_map { |row, changes| changes.map { |change, late, place| [row, change, late, place] } }
                      .group_by(&:last).map { |place, found| line_of(place, found) }
                      .sort_by { |line| [-line.total_ns, -line.definitions, line.path, line.line] }
      end

      private

      # [[Row, [[change, late?, [path, line]], …]], …] of each process
      def all
        @all ||= @segments.flat_map do |segment|
          first = first_mixings(segment)
          defined = definitions(segment)
          segment.definition_costs.group_by(&:name).filter_map do |name, costs|
            changes = defined[name] or next
            cost = costs.max_by(&:entries) # anonymous modules of one line share a name; the widest is the upper bound
            marked = changes.map do |change|
              [change, late?(cost, first[cost.name], change), @caches.place(segment, change.node_id)]
            end
            [row_of(cost, marked), marked]
          end
        end
      end

      def row_of(cost, marked)
        late = marked.count { |_, is_late, _| is_late }
        Row.new(cost: cost, definitions: marked.size, late: late,
                total_ns: cost.ns && (late * cost.ns + (marked.size - late) * @alone_ns))
      end

      # A module that was mixed in before the recording began has no such change.
      def late?(cost, first, change)
        return false if cost.kind == "class" || cost.entries.zero?

        first.nil? || change.at_ns >= first
      end

      def first_mixings(segment)
        segment.cache_changes.select { |change| MIXED_IN.include?(change.kind) }
               .group_by { |change| change.subject.partition(" in ").first }
               .transform_values { |changes| changes.map(&:at_ns).min }
      end

      # Module's name → definitions of its methods.
      def definitions(segment)
        segment.cache_changes.select { |change| KINDS.include?(change.kind) && @caches.after.include?(change) }
               .group_by { |change| change.subject.rpartition("#").first }
      end

      # One module in several processes: the widest reach.
      def joined(rows)
        widest = rows.max_by { |row| row.cost.entries }
        times = rows.filter_map(&:total_ns)
        Row.new(cost: widest.cost, definitions: rows.sum(&:definitions), late: rows.sum(&:late),
                total_ns: (times.sum unless times.empty?))
      end

      def line_of(place, found)
        total = found.sum { |row, _, late, _| late && row.cost.ns ? row.cost.ns : @alone_ns }
        Line.new(path: place[0], line: place[1], definitions: found.size, total_ns: total,
                 modules: found.map { |row, *| row.cost.name }.uniq)
      end
    end
  end
end
