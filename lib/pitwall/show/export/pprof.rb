# frozen_string_literal: true

require "zlib"
require "pitwall/analyse/tree/stacks"
require "pitwall/analyse/tree/weights"
require "pitwall/show/export"
require "pitwall/show/export/pprof_messages"
require "pitwall/version"

module Pitwall
  module Show
    module Export
      # pprof's profile (gzip around one protobuf message): a sample for each process, thread, state and stack, with all
      # weights the recording has, and labels. Written piece by piece: messages one after the other are one, with their lists
      # joined, by protobuf's own rule.
      class Pprof < Format
        # Weight → its name and unit there; heap profiles' names are those that pprof's readers know.
        TYPES = { captures: %w[samples count], calls: %w[calls count], cpu: %w[cpu nanoseconds], wall: %w[wall nanoseconds], wait: %w[wait nanoseconds],
                  objects: %w[alloc_objects count], bytes: %w[alloc_space bytes], retained: %w[inuse_objects count], retained_bytes: %w[inuse_space bytes],
                  gc: %w[gc nanoseconds] }.freeze
        # The period of heap profiles; by its name, among others, servers know these.
        SPACE = %w[space bytes].freeze
        # Pitwall's own labels.
        OWN = %w[thread thread_id pid state class].freeze
        # Samples that are encoded at once.
        BATCH = 4096
        private_constant :TYPES, :SPACE, :BATCH, :OWN

        # @param weight [Symbol, nil] which of its weights readers show first
        # @param selection [Analyse::Selection]
        #: (Array[Record::Segment], ?Symbol?, selection: Analyse::Selection) -> void
        def initialize(segments, weight = nil, selection:)
          super()
          @segments = segments.select { |segment| selection.segment?(segment) }
          @selection = selection
          @weights = Analyse::Weights.of(@segments, selection) # counts come first, as readers expect
          @weight = @weights.include?(weight) ? weight : @weights.find { |name| %i[wall objects].include?(name) }
          @strings = { "" => 0 }
          @locations = {}
          @labels = {}
        end

        # Standard types that a recording of objects does not fill, and why: a line, or none.
        #: () -> Array[String]
        def missing
          return [] if !sited? || @weights.include?(:retained_bytes)
          return ["no inuse_space: the recording was made before the bytes of what is retained were counted"] if @weights.include?(:retained)

          why = allocations.ends? ? "the process was killed, and nobody looked at its end" : "objects were looked at in bursts; pitwall allocations -- CMD follows them to their end"
          ["no inuse_objects and inuse_space: #{why}"]
        end

        # @param out [IO, StringIO] gets bytes
        #: (untyped) -> void
        def write(out)
          out.binmode
          stacks = Analyse::Stacks.new(@segments, @selection)
          packed = Zlib::GzipWriter.new(out)
          packed.mtime = [started_ns.to_i / 1_000_000_000, 1].max # else the clock's: the same recording is the same file
          packed << encode(head)
          each_sample(stacks).each_slice(BATCH) { |samples| packed << encode(sample: samples) }
          packed << encode(places(stacks.tree))
          packed << encode(string_table: @strings.keys)
          packed.finish
        end

        private

        def encode(fields) = PprofMessages::Profile.encode(PprofMessages::Profile.new(**fields))

        def allocations = @allocations ||= Analyse::Allocations.new(@segments)

        def sited? = Analyse::Weights.sited?(@segments, @selection)

        def started_ns = @segments.filter_map { |segment| segment.header.started_at_ns }.min

        def ended_ns
          @segments.filter_map { |segment| segment.header.started_at_ns&.+(segment.stat("elapsed_ns")) }.max
        end

        def head
          type, period = period_of
          fields = { sample_type: @weights.map { |weight| value_type(*TYPES.fetch(weight)) }, comment: comments.map { |text| string(text) },
                     period: period, period_type: value_type(*type), mapping: [mapping], default_sample_type: @weight ? string(TYPES.fetch(@weight).first) : 0 }
          fields.update(time_nanos: started_ns, duration_nanos: ended_ns - started_ns) if started_ns
          fields
        end

        # What lies between two samples: wall time, or objects; calls, and the bytes of objects that were all counted, are one apart.
        def period_of
          sampled = @segments.find { |segment| segment.tallies.any? }
          return [TYPES[:wall], sampled.header.interval_ns.to_i] if sampled
          return [TYPES[:calls], 1] unless sited?

          one_in = allocations.one_in.round
          one_in > 1 ? [TYPES[:objects], one_in] : [SPACE, 1]
        end

        def value_type(name, unit) = PprofMessages::ValueType.new(type: string(name), unit: string(unit))

        # Its flags tell readers that there is nothing left to symbolize.
        def mapping
          program = @segments.filter_map { |segment| segment.header.program }.uniq.join(", ")
          PprofMessages::Mapping.new(id: 1, filename: string(program), has_functions: true, has_filenames: true, has_line_numbers: true)
        end

        def comments
          headers = @segments.map(&:header)
          ["made by pitwall #{VERSION}", *missing, *headers.filter_map { |header| header.ruby["description"] }.grep(String).uniq, *headers.flat_map(&:notes).uniq]
        end

        def string(text) = @strings[text] ||= @strings.size

        # Stacks are made as they are needed: the leaf first.
        def each_sample(stacks)
          Enumerator.new do |samples|
            @segments.each do |segment|
              rows(segment) do |node, labels, values|
                next if values.each_value.all?(&:zero?)

                path = node.is_a?(String) ? [location(node, 0)] : stack(stacks.tree, stacks.node(segment, node))
                samples << PprofMessages::Sample.new(location_id: path, label: labels, value: @weights.map { |weight| values.fetch(weight, 0) })
              end
            end
          end
        end

        # @yield [node or name of what has no place in the code, labels, values by weight]
        def rows(segment, &block)
          segment.tallies.each { |tally| times(segment, tally, &block) if @selection.tally?(segment, tally) }
          segment.calls.each { |call| calls(segment, call, &block) if @selection.calls?(segment, call.thread_id) }
          sites(segment, &block) if sited?
        end

        def times(segment, tally)
          labels = thread_labels(segment, tally.thread_id) + [label("state", Analyse::States.name(tally.state))] + program_labels(segment, tally.label_id)
          tally.each { |node, wall, cpu, captures| yield node, labels, { wall: wall * segment.unit_ns, cpu: cpu * segment.unit_ns, captures: captures } }
        end

        # What samples and sites tell better is left to them.
        def calls(segment, call)
          values = { calls: call.calls, wait: call.wait }
          values.update(wall: [call.wall - call.probe, 0].max, cpu: [call.cpu - call.probe, 0].max) if segment.tallies.empty?
          values.update(objects: call.objects, bytes: call.bytes) if segment.sites.empty?
          yield call.node_id, thread_labels(segment, call.thread_id), values
        end

        def sites(segment)
          scale = Analyse::Allocations.scale(segment)
          segment.sites.each do |site|
            labels = [number_label("pid", segment.header.pid), (label("class", site.class_name.empty? ? "(hidden)" : site.class_name) unless site.special)].compact
            # The VM's and Pitwall's are no objects of the program, as in every view; collection is charged to them too.
            values = site.program? ? { objects: site.count, bytes: site.bytes, retained: site.retained, retained_bytes: site.retained_bytes.to_i } : {}
            yield site.special || site.node, labels, { **values.transform_values { |value| (value * scale.call(site)).round }, gc: site.gc_ns }
          end
        end

        def thread_labels(segment, id)
          name = segment.thread(id).name
          [label("thread", name.empty? ? "thread #{id}" : name), number_label("thread_id", id), number_label("pid", segment.header.pid)].compact
        end

        # What the program said its work was for; names that Pitwall itself uses get a tail. The format takes an empty value for none,
        # and servers refuse the whole profile for a label without a name.
        def program_labels(segment, id)
          segment.labels(id).filter_map { |name, value| label(OWN.include?(name) ? "#{name}_label" : name, value) unless name.empty? || value.empty? }
        end

        def label(key, text) = @labels[[key, text]] ||= PprofMessages::Label.new(key: string(key), str: string(text))

        def number_label(key, number) = number && (@labels[[key, number]] ||= PprofMessages::Label.new(key: string(key), num: number))

        def stack(tree, node)
          path = []
          while node.positive?
            path << location(tree.node_methods[node], tree.lines[node])
            node = tree.parents[node]
          end
          path
        end

        # @param method [Integer, String] the tree's number, or a name
        def location(method, line) = @locations[[method, line]] ||= @locations.size + 1

        # Where no line was running (in C, and in traced calls) stands that of the definition.
        def places(tree)
          functions = {}
          locations = @locations.map do |(method, line), id|
            info = method.is_a?(String) ? Analyse::MethodInfo.new(method, "", 0, Record::Frame::PITWALL) : tree.methods[method]
            function = functions[method] ||= function(functions.size + 1, info)
            PprofMessages::Location.new(id: id, mapping_id: 1, line: [PprofMessages::Line.new(function_id: function.id, line: line.zero? ? info.line : line)])
          end
          { location: locations, function: functions.values }
        end

        # No system's name: Go's pprof takes one that equals the name for C++, and leaves out what stands in <> of it.
        def function(id, info)
          PprofMessages::Function.new(id: id, name: string(info.name), filename: string(info.path), start_line: info.line)
        end
      end
    end
  end
end
