# frozen_string_literal: true

require "pitwall/analyse/recording/states"
require "pitwall/analyse/tree/weights"
require "pitwall/version"

module Pitwall
  module Show
    module Export
      # Rows of recordings with labels and all weights, for formats without a time line (pprof, OTLP). A row is what one
      # thread spent at one stack in one state, an exact call path, or a site of objects.
      # @api private
      class LabelledRows
        # Weight → name and unit. The names of heap profiles are those that pprof's readers know.
        TYPES = { captures: %w[samples count], calls: %w[calls count], cpu: %w[cpu nanoseconds],
                  wall: %w[wall nanoseconds], wait: %w[wait nanoseconds],
                  objects: %w[alloc_objects count], bytes: %w[alloc_space bytes],
                  retained: %w[inuse_objects count], retained_bytes: %w[inuse_space bytes],
                  gc: %w[gc nanoseconds] }.freeze
        # The period's type in heap profiles. Servers recognize heap profiles by this name, among others.
        SPACE = %w[space bytes].freeze
        OF_OBJECTS = %i[objects bytes retained retained_bytes gc].freeze
        private_constant :SPACE, :OF_OBJECTS

        # @return [Array<Record::Segment>] of the selected processes
        attr_reader :segments
        # @return [Array<Symbol>] weights that the rows have; counts come first
        attr_reader :weights

        #: (Array[Record::Segment], Analyse::Selection) -> void
        def initialize(segments, selection)
          @segments = segments.select { |segment| selection.segment?(segment) }
          @selection = selection
          @weights = Analyse::Weights.of(@segments, selection)
        end

        # The weight that readers show first: the one asked for, else wall time or objects.
        #: (Symbol?) -> Symbol?
        def first_weight(asked)
          @weights.include?(asked) ? asked : @weights.find { |name| %i[wall objects].include?(name) }
        end

        # A line about standard types that a recording of objects lacks, with the reason; none if it has all.
        #: () -> Array[String]
        def missing
          return [] if !sited? || @weights.include?(:retained_bytes)
          if @weights.include?(:retained)
            return ["no inuse_space: the recording was made before the bytes of what is retained were counted"]
          end

          why = if allocations.ends? then "the process was killed, and nobody looked at its end"
                else "objects were looked at in bursts; pitwall allocations -- CMD follows them to their end"
                end
          ["no inuse_objects and inuse_space: #{why}"]
        end

        # Notes for people: the Rubies and what they could not record.
        #: (Array[Record::Segment]) -> Array[String]
        def comments(segments = @segments)
          headers = segments.map(&:header)
          rubies = headers.filter_map { |header| header.ruby["description"] }.grep(String).uniq
          ["made by pitwall #{VERSION}", *missing, *rubies, *headers.flat_map(&:notes).uniq]
        end

        # The distance of two samples, with its type: wall time, or a number of objects. 1 for calls, and for the bytes
        # of objects that were all counted.
        # @return [Array([String, String], Integer)]
        #: (?Symbol) -> [[String, String], Integer]
        def period(weight = usual)
          sampled = @segments.find { |segment| segment.tallies.any? }
          if sampled && Analyse::Weights::SAMPLED.include?(weight)
            return [TYPES[:wall], sampled.header.interval_ns.to_i]
          end
          return [TYPES[:calls], 1] unless sited? && OF_OBJECTS.include?(weight)

          one_in = allocations.one_in.round
          one_in > 1 ? [TYPES[:objects], one_in] : [SPACE, 1]
        end

        # @yield [place, labels, values]
        #   place: a node of the segment; a name for objects without a place in the code.
        #   labels: Pitwall's own by Symbol (:thread, :thread_id, :pid, :state, :class), the program's by String. Those
        #   with an empty name or value are left out: readers take an empty value for none, and servers refuse a profile
        #   with an unnamed label.
        #   values: weight → Integer
        #: (Record::Segment) { (Integer | String, Hash[untyped, untyped], Hash[Symbol, Integer]) -> void } -> void
        def each(segment, &block)
          segment.tallies.each { |tally| times(segment, tally, &block) if @selection.tally?(segment, tally) }
          segment.calls.each { |call| calls(segment, call, &block) if @selection.calls?(segment, call.thread_id) }
          sites(segment, &block) if sited?
        end

        private

        def usual
          return :wall if @segments.any? { |segment| segment.tallies.any? }

          sited? ? :objects : :calls
        end

        def allocations = @allocations ||= Analyse::Allocations.new(@segments)

        def sited? = Analyse::Weights.sited?(@segments, @selection)

        def times(segment, tally)
          labels = { **thread_labels(segment, tally.thread_id), state: Analyse::States.name(tally.state),
                     **program_labels(segment, tally.label_id) }
          tally.each do |node, wall, cpu, captures|
            yield node, labels, { wall: wall * segment.unit_ns, cpu: cpu * segment.unit_ns, captures: captures }
          end
        end

        # Rows of traced calls. Their times are used only without samples, their objects only without recorded sites:
        # samples and sites are more exact.
        def calls(segment, call)
          values = { calls: call.calls, wait: call.wait }
          if segment.tallies.empty?
            values.update(wall: [call.wall - call.probe, 0].max, cpu: [call.cpu - call.probe, 0].max)
          end

          values.update(objects: call.objects, bytes: call.bytes) if segment.sites.empty?
          yield call.node_id, thread_labels(segment, call.thread_id), values
        end

        def sites(segment)
          scale = Analyse::Allocations.scale(segment)
          segment.sites.each do |site|
            name = site.class_name.empty? ? "(hidden)" : site.class_name
            labels = { pid: segment.header.pid, class: (name unless site.special) }.compact
            values = site_values(site).transform_values { |value| (value * scale.call(site)).round }
            yield site.special || site.node, labels, { **values, gc: site.gc_ns }
          end
        end

        # A site's objects. The VM's and Pitwall's objects don't count as objects of the program, as in every view.
        # GC time is charged to all sites.
        def site_values(site)
          return {} unless site.program?

          { objects: site.count, bytes: site.bytes, retained: site.retained, retained_bytes: site.retained_bytes.to_i }
        end

        def thread_labels(segment, id)
          name = segment.thread(id).name
          { thread: name.empty? ? "thread #{id}" : name, thread_id: id, pid: segment.header.pid }.compact
        end

        def program_labels(segment, id)
          segment.labels(id).reject { |name, value| name.empty? || value.empty? }
        end
      end
      private_constant :LabelledRows
    end
  end
end
