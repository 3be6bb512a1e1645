# frozen_string_literal: true

require "zlib"
require "pitwall/analyse/tree/stacks"
require "pitwall/analyse/tree/weights"
require "pitwall/show/export"
require "pitwall/record/messages"
require "pitwall/version"

module Pitwall
  module Show
    module Export
      # pprof's profile: one protobuf message, compressed with gzip. The message has a sample for each process, thread,
      # state and stack, with labels and with all weights of the recording.
      # Written piece by piece: by protobuf's rule several messages in a row are one message, with their lists joined.
      class Pprof < Format
        # Weight → name and unit in pprof. The names of heap profiles are those that pprof's readers know.
        TYPES = { captures: %w[samples count], calls: %w[calls count], cpu: %w[cpu nanoseconds],
                  wall: %w[wall nanoseconds], wait: %w[wait nanoseconds],
                  objects: %w[alloc_objects count], bytes: %w[alloc_space bytes],
                  retained: %w[inuse_objects count], retained_bytes: %w[inuse_space bytes],
                  gc: %w[gc nanoseconds] }.freeze
        # The period's type in heap profiles. Servers recognize heap profiles by this name, among others.
        SPACE = %w[space bytes].freeze
        # Names of Pitwall's own labels.
        OWN = %w[thread thread_id pid state class].freeze
        # Number of samples in a message.
        BATCH = 4096
        Messages = Record::Messages::Pprof
        private_constant :TYPES, :SPACE, :BATCH, :OWN, :Messages

        # @param weight [Symbol, nil] the weight that readers show first
        # @param selection [Analyse::Selection] the exported threads, states and labels
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

        # A line about pprof's standard types that a recording of objects lacks, with the reason; none if it has all.
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

        # Writes the compressed profile.
        # @param out [IO, StringIO] receives the bytes
        #: (untyped) -> void
        def write(out)
          out.binmode
          stacks = Analyse::Stacks.new(@segments, @selection)
          packed = Zlib::GzipWriter.new(out)
          # The recording's time, not the current time: exporting a recording twice gives equal files.
          packed.mtime = [started_ns.to_i / 1_000_000_000, 1].max
          packed << encode(head)
          each_sample(stacks).each_slice(BATCH) { |samples| packed << encode(sample: samples) }
          packed << encode(places(stacks.tree))
          packed << encode(string_table: @strings.keys)
          packed.finish
        end

        private

        def encode(fields) = Messages::Profile.encode(Messages::Profile.new(**fields))

        def allocations = @allocations ||= Analyse::Allocations.new(@segments)

        def sited? = Analyse::Weights.sited?(@segments, @selection)

        def started_ns = @segments.filter_map { |segment| segment.header.started_at_ns }.min

        def ended_ns
          @segments.filter_map { |segment| segment.header.started_at_ns&.+(segment.stat("elapsed_ns")) }.max
        end

        def head
          type, period = period_of
          fields = { sample_type: @weights.map { |weight| value_type(*TYPES.fetch(weight)) },
                     comment: comments.map { |text| string(text) },
                     period: period, period_type: value_type(*type), mapping: [mapping],
                     default_sample_type: @weight ? string(TYPES.fetch(@weight).first) : 0 }
          fields.update(time_nanos: started_ns, duration_nanos: ended_ns - started_ns) if started_ns
          fields
        end

        # The distance of two samples, with its type: wall time, or a number of objects. 1 for calls, and for the bytes
        # of objects that were all counted.
        def period_of
          sampled = @segments.find { |segment| segment.tallies.any? }
          return [TYPES[:wall], sampled.header.interval_ns.to_i] if sampled
          return [TYPES[:calls], 1] unless sited?

          one_in = allocations.one_in.round
          one_in > 1 ? [TYPES[:objects], one_in] : [SPACE, 1]
        end

        def value_type(name, unit) = Messages::ValueType.new(type: string(name), unit: string(unit))

        # The program's mapping. Its flags tell readers that functions, files and lines are known.
        def mapping
          program = @segments.filter_map { |segment| segment.header.program }.uniq.join(", ")
          Messages::Mapping.new(id: 1, filename: string(program),
                                     has_functions: true, has_filenames: true, has_line_numbers: true)
        end

        def comments
          headers = @segments.map(&:header)
          rubies = headers.filter_map { |header| header.ruby["description"] }.grep(String).uniq
          ["made by pitwall #{VERSION}", *missing, *rubies, *headers.flat_map(&:notes).uniq]
        end

        def string(text) = @strings[text] ||= @strings.size

        # All samples. A sample's stack begins with the leaf.
        def each_sample(stacks)
          Enumerator.new do |samples|
            @segments.each do |segment|
              rows(segment) do |node, labels, values|
                next if values.each_value.all?(&:zero?)

                path = node.is_a?(String) ? [location(node, 0)] : stack(stacks.tree, stacks.node(segment, node))
                values = @weights.map { |weight| values.fetch(weight, 0) }
                samples << Messages::Sample.new(location_id: path, label: labels, value: values)
              end
            end
          end
        end

        # @yield [node, labels, values by weight]; instead of a node a name for objects without a place in the code
        def rows(segment, &block)
          segment.tallies.each { |tally| times(segment, tally, &block) if @selection.tally?(segment, tally) }
          segment.calls.each { |call| calls(segment, call, &block) if @selection.calls?(segment, call.thread_id) }
          sites(segment, &block) if sited?
        end

        def times(segment, tally)
          labels = [*thread_labels(segment, tally.thread_id), label("state", Analyse::States.name(tally.state)),
                    *program_labels(segment, tally.label_id)]
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
            labels = [number_label("pid", segment.header.pid), (label("class", name) unless site.special)].compact
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
          [label("thread", name.empty? ? "thread #{id}" : name), number_label("thread_id", id),
           number_label("pid", segment.header.pid)].compact
        end

        # Labels that the program set. A name that Pitwall itself uses gets the suffix "_label".
        # Labels with an empty name or value are left out: pprof reads an empty value as no value, and servers refuse a
        # profile with an unnamed label.
        def program_labels(segment, id)
          segment.labels(id).filter_map do |name, value|
            label(OWN.include?(name) ? "#{name}_label" : name, value) unless name.empty? || value.empty?
          end
        end

        def label(key, text) = @labels[[key, text]] ||= Messages::Label.new(key: string(key), str: string(text))

        def number_label(key, number)
          number && (@labels[[key, number]] ||= Messages::Label.new(key: string(key), num: number))
        end

        def stack(tree, node)
          path = []
          while node.positive?
            path << location(tree.node_methods[node], tree.lines[node])
            node = tree.parents[node]
          end
          path
        end

        # The id of a location.
        # @param method [Integer, String] the method's number in the tree, or a name
        def location(method, line) = @locations[[method, line]] ||= @locations.size + 1

        # All locations and functions. Frames without a current line (C functions and traced calls) get the line of the
        # definition.
        def places(tree)
          functions = {}
          locations = @locations.map do |(method, line), id|
            info = tree.methods[method] unless method.is_a?(String)
            info ||= Analyse::MethodInfo.new(method, "", 0, Record::Frame::PITWALL)
            function = functions[method] ||= function(functions.size + 1, info)
            line = Messages::Line.new(function_id: function.id, line: line.zero? ? info.line : line)
            Messages::Location.new(id: id, mapping_id: 1, line: [line])
          end
          { location: locations, function: functions.values }
        end

        # A function without a system name. If the system name equaled the name, Go's pprof would take the name for C++
        # and remove all text in <>.
        def function(id, info)
          Messages::Function.new(id: id, name: string(info.name), filename: string(info.path),
                                      start_line: info.line)
        end
      end
    end
  end
end
