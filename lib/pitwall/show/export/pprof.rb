# frozen_string_literal: true

require "zlib"
require "pitwall/analyse/tree/stacks"
require "pitwall/show/export"
require "pitwall/show/export/labelled_rows"
require "pitwall/show/export/shared_objects"
require "pitwall/record/messages"
require "pitwall/version"

module Pitwall
  module Show
    module Export
      # pprof's profile: one protobuf message, compressed with gzip. The message has a sample for each process, thread,
      # state and stack, with labels and with all weights of the recording.
      # Written piece by piece: by protobuf's rule several messages in a row are one message, with their lists joined.
      class Pprof < Format
        # Names of Pitwall's own labels.
        OWN = %w[thread thread_id pid state class].freeze
        # Number of samples in a message.
        BATCH = 4096
        TYPES = LabelledRows::TYPES
        Messages = Record::Messages::Pprof
        private_constant :TYPES, :BATCH, :OWN, :Messages

        # @param weight [Symbol, nil] the weight that readers show first
        # @param selection [Analyse::Selection] the exported threads, states and labels
        #: (Array[Record::Segment], ?Symbol?, selection: Analyse::Selection) -> void
        def initialize(segments, weight = nil, selection:)
          super()
          @rows = LabelledRows.new(segments, selection)
          @segments = @rows.segments
          @selection = selection
          @weights = @rows.weights # counts come first, as readers expect
          @weight = @rows.first_weight(weight)
          @strings = { "" => 0 }
          @locations = {}
          @objects = SharedObjects.new(@segments)
          @labels = {}
        end

        # A line about pprof's standard types that a recording of objects lacks, with the reason; none if it has all.
        #: () -> Array[String]
        def missing = @rows.missing

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

        def started_ns = @segments.filter_map { |segment| segment.header.started_at_ns }.min

        def ended_ns
          @segments.filter_map { |segment| segment.header.started_at_ns&.+(segment.stat("elapsed_ns")) }.max
        end

        def head
          type, period = @rows.period
          fields = { sample_type: @weights.map { |weight| value_type(*TYPES.fetch(weight)) },
                     comment: @rows.comments.map { |text| string(text) },
                     period: period, period_type: value_type(*type), mapping: [mapping],
                     default_sample_type: @weight ? string(TYPES.fetch(@weight).first) : 0 }
          fields.update(time_nanos: started_ns, duration_nanos: ended_ns - started_ns) if started_ns
          fields
        end

        def value_type(name, unit) = Messages::ValueType.new(type: string(name), unit: string(unit))

        # The program's mapping. Its flags tell readers that functions, files and lines are known.
        def mapping
          program = @segments.filter_map { |segment| segment.header.program }.uniq.join(", ")
          Messages::Mapping.new(id: 1, filename: string(program),
                                     has_functions: true, has_filenames: true, has_line_numbers: true)
        end

        def string(text) = @strings[text] ||= @strings.size

        # All samples. A sample's stack begins with the leaf.
        def each_sample(stacks)
          Enumerator.new do |samples|
            @segments.each do |segment|
              @rows.each(segment) do |node, labels, values|
                next if values.each_value.all?(&:zero?)

                path = node.is_a?(String) ? [location(node, 0)] : stack(stacks.tree, stacks.node(segment, node))
                values = @weights.map { |weight| values.fetch(weight, 0) }
                samples << Messages::Sample.new(location_id: path, label: label_set(labels), value: values)
              end
            end
          end
        end

        # Labels as messages. Rows in a row often have the same.
        def label_set(labels)
          return @label_set if labels.equal?(@labelled)

          @labelled = labels
          @label_set = labels.map { |name, value| label(label_name(name), value) }
        end

        # A label of the program with a name that Pitwall itself uses gets the suffix "_label".
        def label_name(name) = OWN.include?(name) ? "#{name}_label" : name.to_s

        def label(key, value)
          @labels[[key, value]] ||= if value.is_a?(Integer) then Messages::Label.new(key: string(key), num: value)
                                    else Messages::Label.new(key: string(key), str: string(value))
                                    end
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

        # The mapping of a native frame's object; the program's of other frames. Go's pprof looks for no names in it, as
        # the functions have names.
        # @param mappings [Hash] path => mapping, of all objects so far
        def mapping_of(info, mappings)
          path = @objects.path(info)
          return 1 unless path

          mappings[path] ||= Messages::Mapping.new(id: mappings.size + 2, filename: string(path),
                                                   build_id: string(@objects.build_id(path).to_s), has_functions: true)
          mappings[path].id
        end

        # All locations, functions and objects. Frames without a current line (C functions and traced calls) get the
        # line of the definition.
        def places(tree)
          functions, mappings = {}, {}
          locations = @locations.map do |(method, line), id|
            info = tree.methods[method] unless method.is_a?(String)
            info ||= Analyse::MethodInfo.new(method, "", 0, Record::Frame::PITWALL)
            function = functions[method] ||= function(functions.size + 1, info)
            line = Messages::Line.new(function_id: function.id, line: line.zero? ? info.line : line)
            Messages::Location.new(id: id, mapping_id: mapping_of(info, mappings), line: [line],
                                   address: @objects.path(info) ? @objects.address(info) : 0)
          end
          { location: locations, function: functions.values, mapping: mappings.values }
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
