# frozen_string_literal: true

require "google/protobuf"
require "pitwall/record/import/figures"
require "pitwall/record/import/format"
require "pitwall/record/import/labelled_segment"
require "pitwall/record/import/otlp/dictionary"
require "pitwall/record/messages"

module Pitwall
  module Record
    module Import
      # OpenTelemetry's profiles: one message ProfilesData, or the request that carries it, which has the same fields
      # (v1development of opentelemetry-proto v1.11.0). A resource is a process, with a profile for each figure.
      # Samples of different figures with the same stack, attributes and link are one.
      # @api private
      class Otlp < Format
        # Attributes of Pitwall's own → labels.
        OWN = { "pitwall.state" => "state", "pitwall.class" => "class" }.freeze
        # Attributes of a resource that name the program, best first.
        PROGRAM = %w[process.executable.name service.name process.command].freeze
        # The first byte of a message with a resource, or with a dictionary.
        FIRST = [0x0A, 0x12].freeze
        # Bits of a number of a set of labels.
        SET_BITS = 32
        private_constant :OWN, :PROGRAM, :FIRST, :SET_BITS

        class << self
          def title = "OTLP profiles"

          # pprof has its strings in another field, so neither format is taken for the other.
          def fits?(source)
            return false unless FIRST.include?(source.beginning.getbyte(0)) && !source.text?

            data = parse(source)
            !data.nil? && !data.dictionary.nil? && data.dictionary.string_table.any?
          end

          # The message, nil where the bytes are none.
          #: (Source) -> untyped
          def parse(source) = source.message(Messages::Otlp::ProfilesData)
        end

        def write(writer)
          data = self.class.parse(@source) or refuse("is damaged: its bytes are no message of OTLP")
          refuse("is damaged: it has no dictionary") unless data.dictionary
          @dictionary = Dictionary.new(data.dictionary)
          resources = data.resource_profiles.map { |resource| [resource, profiles(resource)] }
          @figures = figures(resources.flat_map(&:last))
          resources.each { |resource, profiles| write_resource(writer, resource, profiles) }
          segment(writer, sampled: false).close if resources.empty?
        end

        private

        def profiles(resource) = resource.scope_profiles.flat_map { |scope| scope.profiles.to_a }

        # Each kind of figure once, in the file's order.
        def figures(profiles)
          @types = profiles.map { |profile| type(profile.sample_type) }.uniq
          Figures.new(@types, type: @type).tap { |figures| @warnings.concat(figures.warnings) }
        end

        # Name and unit.
        def type(type) = type ? [@dictionary.text(type.type_strindex), @dictionary.text(type.unit_strindex)] : ["", ""]

        # The samples of a resource become rows of its process, or of the processes that attributes name.
        def write_resource(writer, resource, profiles)
          attributes = @dictionary.key_values(resource.resource&.attributes || [])
          owner = LabelledSegment.pid(attributes)
          segments = Hash.new do |all, pid|
            all[pid] = LabelledSegment.new(new_segment(writer, attributes, pid, profiles), @figures, @dictionary)
          end
          each_sample(profiles) do |stack, labels, weights|
            pid = LabelledSegment.pid(labels)
            segments[pid.zero? ? owner : pid].add_numbered(stack, labels, weights) { @dictionary.stack(stack) }
          end
          segments[owner] if segments.empty?
          objects = @objects ||= @dictionary.build_ids
          segments.each_value { |segment| segment.close(stats(profiles), objects: objects) }
        end

        # @yield [the stack's number, labels, weights]
        def each_sample(profiles)
          numbers, sums = add_up(profiles)
          labels = @sets.each_key.map { |attributes, link| labels(attributes, link) }
          weights = sums.keys
          numbers.each do |identity, at|
            found = weights.to_h { |weight| [weight, sums[weight][at] || 0] }.reject { |_, value| value.zero? }
            next if found.empty?

            yield identity >> SET_BITS, labels[identity & ((1 << SET_BITS) - 1)], found
          end
        end

        # A sample is known by an Integer of its stack and the number of its set of attributes and link: that takes a
        # tenth of the memory of an Array.
        # @return [Array(Hash, Hash)] the sample → its number; weight → values by number
        def add_up(profiles)
          @sets = {}
          numbers = {}
          sums = Hash.new { |all, weight| all[weight] = [] }
          profiles.each do |profile|
            at = @types.index(type(profile.sample_type))
            profile.samples.each do |sample|
              value = value(sample)
              weight = @figures.weight(at) or next
              next if value.zero?

              number = numbers[identity(sample)] ||= numbers.size
              sums[weight][number] = (sums[weight][number] || 0) + @figures.amount(at, value)
            end
          end
          [numbers, sums]
        end

        def identity(sample)
          stack = @dictionary.check_stack(sample.stack_index)
          set = @sets[[sample.attribute_indices.to_a, sample.link_index]] ||= @sets.size
          stack << SET_BITS | set
        end

        # A sample has values, or moments of which each counts 1, or both.
        def value(sample)
          values, moments = sample["values"], sample.timestamps_unix_nano
          return moments.size if values.empty?
          return values.sum if moments.empty? || moments.size == values.size

          refuse("is damaged: a sample has #{values.size} values for #{moments.size} timestamps")
        end

        def labels(attributes, link)
          @dictionary.attributes(attributes).transform_keys { |name| OWN.fetch(name, name) }
                     .merge(@dictionary.link(link))
        end

        def new_segment(writer, attributes, pid, profiles)
          texts = attributes.select { |_, value| value.is_a?(String) }
          ruby = { "engine" => texts["process.runtime.name"], "version" => texts["process.runtime.version"],
                   "description" => texts["process.runtime.description"] }.compact
          segment(writer, sampled: @figures.sampled?, pid: (pid if pid.positive?),
                          ppid: id(attributes["process.parent_pid"]), program: texts.values_at(*PROGRAM).compact.first,
                          commit: texts["vcs.ref.head.revision"], ruby: (ruby unless ruby.empty?),
                          started_at_ns: started_at(profiles), interval_ns: interval(profiles))
        end

        def started_at(profiles) = profiles.map(&:time_unix_nano).select { |time| time.between?(1, (1 << 63) - 1) }.min

        def stats(profiles)
          started = started_at(profiles) or return {}
          timed = profiles.select { |profile| profile.time_unix_nano.positive? }
          elapsed = timed.map { |profile| profile.time_unix_nano + profile.duration_nano }.max - started
          elapsed.between?(1, Limits::VALUE - 1) ? { "elapsed_ns" => elapsed } : {}
        end

        # The distance of two samples, where it is a time.
        def interval(profiles)
          profiles.filter_map do |profile|
            ns = UNITS[type(profile.period_type).last]
            profile.period * ns if ns && profile.period.between?(1, Limits::VALUE / ns)
          end.first
        end
      end
      private_constant :Otlp
    end
  end
end
