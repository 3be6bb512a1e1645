# frozen_string_literal: true

require "pitwall/analyse/caches/definitions"
require "pitwall/record/vm_counter"

module Pitwall
  module Analyse
    # Which lines empty caches of the VM.
    #
    # Two kinds of counters: Ruby's own (RubyVM.stat), whose increase is divided among lines, and Pitwall's, which count
    # changes. Ruby has no counter of changed methods since 3.0, so only Pitwall's counters show them.
    class Caches
      # counter: "class_serial", or one of OWN
      # kind:    "method_added"
      # path, line: the innermost line of Ruby code that is no part of Ruby itself; "" and 0: unknown
      # subject: "Shop::Cart#sum"
      # count:   the increase of the counter
      # node_id, segment: where the stack is
      # first_ns: when it happened first, in ns since the recording's start
      # misses:  constant cache misses that followed (CachesCost)
      Finding = Struct.new(:counter, :kind, :path, :line, :subject, :count, :node_id, :segment, :first_ns, :misses,
                           keyword_init: true)

      # Pitwall's counters, by kind of change.
      OWN = {
        "constants_changed" => %w[constant_set constant_removed constant_autoload constant_visibility
                                  constant_changed],
        "methods_changed" => %w[method_added method_aliased method_removed method_undefined method_visibility
                                operator_redefined],
        "ancestors_changed" => %w[module_included module_prepended object_extended refinement_made refinement_used],
        "classes_made" => %w[class_made module_made singleton_class_made class_copied],
        "tracing_enabled" => %w[tracing_enabled]
      }.freeze
      # All kinds of change. The last three are shown by Ruby's counters only.
      KINDS = [*OWN.values.flatten, "class_changed", "class_variable_set", "shape_made"].freeze
      OWN_OF = OWN.flat_map { |counter, kinds| kinds.map { |kind| [kind, counter] } }.to_h.freeze
      PARTS = Record::VM_COUNTERS.each_value.select(&:part).freeze
      private_constant :OWN_OF, :PARTS

      # Changes before the program was warm do not count.
      #
      # boot:  only changes after the first piece of work (request, job, test) began, or Pitwall.booted was called
      # works: only changes after so many pieces of work had ended; nil: all
      After = Struct.new(:boot, :works, keyword_init: true) do
        #: (Record::CacheChange) -> bool
        def include?(change) = (!boot || change.begun.positive?) && (works.nil? || change.ended >= works)

        #: () -> bool
        def all? = !boot && works.nil?
      end

      # Pitwall's counter of a kind of change: "method_added" → "methods_changed"; nil: none counts it.
      #: (String) -> String?
      def self.counter_of(kind) = OWN_OF[kind]

      # @return [Array<Record::Segment>] processes whose caches were watched
      attr_reader :segments
      # @return [After]
      attr_reader :after

      #: (Array[Record::Segment], ?after: After) -> void
      def initialize(segments, after: After.new)
        @segments = segments.select(&:caches?)
        @after = after
      end

      #: () -> bool
      def any? = @segments.any?

      # The increase of each counter: Ruby's over the whole recording, or over what counts where a part was asked for.
      #: () -> Hash[String, Integer]
      def counters
        vm = sum(&:cache_counters)
        vm = vm.keys.select { |name| with_line?(name) }.to_h { |name| [name, blamed.fetch(name, 0)] } unless @after.all?
        return vm if only_counted?

        vm.merge(OWN.keys.to_h { |name| [name, blamed.fetch(name, 0)] })
      end

      # The part of each counter that findings have.
      #: () -> Hash[String, Integer]
      def blamed
        @blamed ||= findings.group_by(&:counter).transform_values { |rows| rows.sum(&:count) }
      end

      # The part of Ruby's counters that Pitwall's own code caused.
      #: () -> Hash[String, Integer]
      def own = @after.all? ? sum(&:own_cache_counters).select { |_, count| count.positive? } : {}

      # The part of Ruby's counters without a line.
      #: () -> Hash[String, Integer]
      def unblamed
        return {} if !@after.all? || only_counted?

        sum(&:cache_counters).select { |name, _| with_line?(name) }
                             .to_h { |name, count| [name, count - blamed.fetch(name, 0) - own.fetch(name, 0)] }
                             .select { |_, count| count.positive? }
      end

      # The same as rows, without a place.
      #: () -> Array[Finding]
      def without_line
        unblamed.map do |name, count|
          Finding.new(counter: name, kind: name, path: "", line: 0, subject: "", count: count, node_id: 0)
        end
      end

      # Can an increase of the counter be blamed on a line?
      #: (String) -> bool
      def with_line?(name) = PARTS.any? { |counter| counter.name == name }

      # How changes were watched: "lines", "methods" or "counters".
      #: () -> Array[String]
      def watched = @segments.map(&:caches_watched).uniq

      # Do the recordings have Ruby's counters only, and no line of any change?
      #: () -> bool
      def only_counted? = watched == ["counters"]

      # How often comparing lines stopped: what changed then may have no line.
      #: () -> Integer
      def rests = @segments.sum(&:cache_line_rests)

      # Is there a time that counts? No process became warm where it lacks.
      #: () -> bool
      def warm?
        return true if @after.all?

        @segments.any? do |segment|
          @after.boot ? segment.works_begun.positive? : segment.works_ended >= @after.works
        end
      end

      # Changes that are not in the recordings.
      #: () -> Integer
      def lost = @segments.sum(&:cache_changes_lost)

      # Names of counters that no Ruby of the recording has.
      #: () -> Array[String]
      def not_counted = Record::STAT_COUNTERS.select { |name| @segments.none? { |one| one.cache_stat?(name) } }

      # What counts, the most frequent first.
      #: () -> Array[Finding]
      def findings
        @findings ||= @segments.flat_map { |segment| of_segment(segment) }
                               .group_by { |row| [row.counter, row.kind, row.path, row.line, row.subject] }
                               .each_value.map { |rows| joined(rows) }
                               .sort_by { |row| [-row.count, row.counter, row.path, row.line, row.kind, row.subject] }
      end

      # Rows by line, all counters of a change together: [finding of the change, {counter => count}]. What costs most
      # comes first.
      #: () -> Array[[Finding, Hash[String, Integer]]]
      def changes
        @changes ||= begin
          rows = findings.group_by { |row| [row.kind, row.path, row.line, row.subject] }.each_value.map do |same|
            own = same.find { |row| OWN.key?(row.counter) } || same.first
            [own, same.to_h { |row| [row.counter, row.count] }]
          end
          rows.each_with_index.sort_by { |(row, counts), at| [*figures(row, counts).rank, -row.count, at] }.map(&:first)
        end
      end

      # Each change by itself, in the order of the recordings.
      #: () -> Array[Finding]
      def moments
        @segments.flat_map do |segment|
          same = of_segment(segment).group_by { |row| [row.first_ns, row.kind, row.node_id, row.subject] }
          same.each_value.map do |rows|
            rows.find { |row| OWN.key?(row.counter) } || rows.first
          end
        end
      end

      # What a row of `changes` costs.
      #: (Finding, Hash[String, Integer]) -> CachesCost::Figures
      def figures(row, counts)
        ns, samples = (@times ||= times)[[row.path, row.line]]
        emptied = counts.sum { |name, count| OWN.key?(name) ? 0 : count }
        CachesCost::Figures.new(misses: cost.misses? ? row.misses : nil, emptied: emptied, time_ns: ns,
                                samples: samples)
      end

      #: () -> CachesCost
      def cost = @cost ||= CachesCost.new(@segments)

      # How many changes there are: each change once, whatever counters it increased.
      #: () -> Integer
      def total = changes.sum { |row, _counts| row.count }

      # The frames of a finding's stack, the innermost first: [[name, path, line], …]
      #: (Finding) -> Array[[String, String, Integer]]
      def stack(finding)
        segment = finding.segment
        found = []
        node = finding.node_id
        while node.positive?
          frame = segment.frame(node)
          found << [frame.name, frame.path, segment.lines[node]]
          node = segment.parents[node]
        end
        found
      end

      # On which modules it is costly to define methods.
      #: () -> Definitions
      def definitions = @definitions ||= Definitions.new(@segments, self)

      # The innermost line of Ruby code that Ruby does not bring with it: [path, line]; ["", 0]: unknown.
      # @api private
      #: (Record::Segment, Integer) -> [String, Integer]
      def place(segment, node)
        while node.positive?
          frame = segment.frame(node)
          line = segment.lines[node]
          return [frame.path, line] if line.positive? && !frame.path.empty? && !frame.path.start_with?("<internal:")

          node = segment.parents[node]
        end
        ["", 0]
      end

      private

      def sum
        @segments.map { |segment| yield segment }.reduce({}) { |all, one| all.merge(one) { |_, a, b| a + b } }
      end

      def times
        return {} unless cost.sampled?

        cost.times(findings.map { |row| [row.path, row.line] }.uniq)
      end

      def joined(rows)
        first = rows.min_by(&:first_ns)
        first.dup.tap { |row| row.count, row.misses = rows.sum(&:count), rows.sum(&:misses) }
      end

      def of_segment(segment)
        places = {}
        misses = cost.misses_after(segment)
        segment.cache_changes.each_with_index.flat_map do |change, at|
          next [] unless @after.include?(change)

          place = places[change.node_id] ||= place(segment, change.node_id)
          counts_of(segment, change).map do |counter, count|
            Finding.new(counter: counter, kind: change.kind, path: place[0], line: place[1], subject: change.subject,
                        count: count, node_id: change.node_id, segment: segment, first_ns: change.at_ns,
                        misses: misses[at])
          end
        end
      end

      def counts_of(segment, change)
        counts = PARTS.filter_map do |counter|
          count = change[counter.part]
          [counter.name, count] if count.positive? && segment.cache_stat?(counter.name)
        end
        own = OWN_OF[change.kind]
        own ? [[own, 1], *counts] : counts
      end
    end
  end
end
