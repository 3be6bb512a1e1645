# frozen_string_literal: true

require "google/protobuf"
require "pitwall/record/import/addresses"
require "pitwall/record/import/format"
require "pitwall/record/import/figures"
require "pitwall/record/import/labelled_segment"
require "pitwall/record/messages"

module Pitwall
  module Record
    module Import
      # pprof's profile: one protobuf message, usually compressed. Samples have a stack (the leaf first), one value for
      # each figure, and labels.
      # @api private
      class Pprof < Format
        include Addresses

        # First bytes of a message: the numbers of its fields, with the types that protobuf writes them as.
        FIRST = [*[*1..6, 11, 13].map { |field| field << 3 | 2 }, *[*7..10, *12..15].map { |field| field << 3 }].freeze
        private_constant :FIRST

        class << self
          def title = "pprof"

          # The message is parsed: many bytes may be a beginning of one.
          def fits?(source)
            return false unless FIRST.include?(source.beginning.getbyte(0)) && !source.text?

            profile = parse(source)
            profile && profile.sample_type.any? && profile.string_table.first == ""
          end

          # The message, nil where the bytes are none.
          #: (Source) -> untyped
          def parse(source) = source.message(Messages::Pprof::Profile)
        end

        def write(writer)
          @profile = self.class.parse(@source) or refuse("is damaged: its bytes are no message of pprof")
          @strings = @profile.string_table.to_a.map { |text| readable(text) }
          figures = Figures.new(@profile.sample_type.map { |type| [text(type.type), text(type.unit)] }, type: @type)
          @warnings.concat(figures.warnings)
          read_places
          segments = processes(writer, figures)
          @profile.sample.each { |sample| add(segments, figures, sample) }
          segments[0] if segments.empty?
          segments.each_value { |segment| segment.close(stats) }
        end

        private

        # What the message says of the whole.
        def stats = @profile.duration_nanos.positive? ? { "elapsed_ns" => @profile.duration_nanos } : {}

        def processes(writer, figures)
          Hash.new do |segments, pid|
            segment = segment(writer, sampled: figures.sampled?, pid: (pid if pid.positive?), program: program,
                                      started_at_ns: (@profile.time_nanos if @profile.time_nanos.positive?),
                                      interval_ns: interval)
            segments[pid] = LabelledSegment.new(segment, figures, @places)
          end
        end

        def add(segments, figures, sample)
          weights = figures.of(sample.value.to_a)
          return if weights.empty?

          labels = labels(sample)
          segments[LabelledSegment.pid(labels)].add(sample.location_id.to_a.reverse!, labels, weights)
        end

        def text(number) = @strings[index(number, @strings.size, "a string's number")]

        def readable(text)
          return text if text.encoding == Encoding::UTF_8 && text.valid_encoding?

          text.dup.force_encoding(Encoding::UTF_8).scrub("?")
        end

        def program
          mapping = @profile.mapping.first or return
          name = File.basename(text(mapping.filename))
          name unless name.empty?
        end

        def interval
          type = @profile.period_type or return
          ns = UNITS[text(type.unit)]
          @profile.period * ns if ns && @profile.period.positive?
        end

        # Name → text or number. A label is short, so equal ones are read once.
        def labels(sample)
          key = sample.label.map { |label| [label.key, label.str, label.num] }
          (@labels ||= {})[key] ||= key.to_h do |name, string, number|
            [text(name), string.zero? ? number : text(string)]
          end
        end

        def read_places
          @mappings = @profile.mapping.to_h { |mapping| [mapping.id, mapping] }
          functions = @profile.function.to_h { |function| [function.id, function] }
          @places = Hash.new { |_, id| wrong("a location of a sample", "one of the list", id) }
          @profile.location.each { |location| @places[location.id] = frames(location, functions) }
        end

        # The last line is the function into which the others were inlined.
        def frames(location, functions)
          mapping = @mappings[location.mapping_id]
          if location.line.empty?
            path = mapping ? text(mapping.filename) : ""
            return [[unnamed(path, location.address, mapping), path, 0, 0, Frame::NATIVE]]
          end

          location.line.map do |line|
            function = functions[line.function_id] or
              wrong("a location's function", "one of the list", line.function_id)
            name, path = text(function.name), text(function.filename)
            name = text(function.system_name) if name.empty?
            kind = compiled?(location.address, path) ? Frame::NATIVE : kind(name, path)
            path = text(mapping.filename) if kind == Frame::NATIVE && path.empty? && mapping
            [name, path, line(function.start_line), kind == Frame::NATIVE ? 0 : line(line.line), kind]
          end.reverse
        end
      end
      private_constant :Pprof
    end
  end
end
