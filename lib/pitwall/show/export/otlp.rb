# frozen_string_literal: true

require "pitwall/analyse/tree/stacks"
require "pitwall/record/messages"
require "pitwall/show/export"
require "pitwall/show/export/labelled_rows"
require "pitwall/show/export/otlp/dictionary"
require "pitwall/show/export/otlp/profile_bytes"
require "pitwall/version"

module Pitwall
  module Show
    module Export
      # OpenTelemetry's profiles: one message ProfilesData of v1development of opentelemetry-proto v1.11.0. Each process
      # is a resource with one profile for each weight. All share the dictionary.
      #
      # Written piece by piece: stacks as soon as there are some, by protobuf's rule that several messages in a row are
      # one message, with their lists joined. Profiles are kept as bytes until their process is done.
      class Otlp < Format
        # Version of the semantic conventions that name the attributes.
        CONVENTIONS = "https://opentelemetry.io/schemas/1.44.0"
        # Names of attributes of Pitwall's own labels. OpenTelemetry has none for the last two.
        OWN = { thread: "thread.name", thread_id: "thread.id", state: "pitwall.state", class: "pitwall.class" }.freeze
        # Names that readers take for a thread, a process, a state or a class.
        TAKEN = [*OWN.values, "process.pid", *OWN.keys.map(&:to_s), "pid"].freeze
        # Labels that are a link to a span.
        TRACE, SPAN = "trace_id", "span_id"
        # OpenTelemetry's ids: bytes in hexadecimal, not all zero.
        TRACE_ID = /\A(?!0+\z)[\da-f]{32}\z/.freeze
        SPAN_ID = /\A(?!0+\z)[\da-f]{16}\z/.freeze
        Messages = Record::Messages::Otlp
        private_constant :CONVENTIONS, :OWN, :TAKEN, :TRACE, :SPAN, :TRACE_ID, :SPAN_ID, :Messages

        # @param weight [Symbol, nil] the weight that readers show first
        # @param selection [Analyse::Selection] the exported threads, states and labels
        #: (Array[Record::Segment], ?Symbol?, selection: Analyse::Selection) -> void
        def initialize(segments, weight = nil, selection:)
          super()
          @rows = LabelledRows.new(segments, selection)
          @selection = selection
          # Readers show the first profile first.
          @weights = [@rows.first_weight(weight), *@rows.weights].compact.uniq
        end

        # A line about standard types that a recording of objects lacks, with the reason; none if it has all.
        #: () -> Array[String]
        def missing = @rows.missing

        # @param out [IO, StringIO] receives the bytes
        #: (untyped) -> void
        def write(out)
          out.binmode
          segments = @rows.segments
          @stacks = Analyse::Stacks.new(segments, @selection)
          @dictionary = Dictionary.new(@stacks.tree, segments) { |tables| out << ProfileBytes.dictionary(tables) }
          segments.each { |segment| out << resource(segment) }
          @dictionary.finish
        end

        private

        # One process with its profiles, as bytes.
        def resource(segment)
          profiles = @weights.to_h { |weight| [weight, ProfileBytes.new(**head(segment, weight))] }
          fill(segment, profiles)
          scope = { scope: Messages::InstrumentationScope.new(name: "pitwall", version: VERSION),
                    schema_url: CONVENTIONS }
          ProfileBytes.resource({ resource: Messages::Resource.new(attributes: attributes(segment)),
                                  schema_url: CONVENTIONS }, scope, profiles.each_value.reject(&:empty?))
        end

        def fill(segment, profiles)
          each_sample(segment) do |stack, (attributes, link), values|
            values.each do |weight, value|
              profiles[weight]&.add(stack, attributes, link, value) unless value.zero?
            end
          end
        end

        # Samples of times come as they are: a thread has one in each state at each stack. Calls and sites are added up
        # first, as there may be several of a stack with the same attributes.
        def each_sample(segment, &block)
          sums = {}
          @rows.each(segment) do |place, labels, values|
            next if values.each_value.all?(&:zero?)

            stack = place.is_a?(String) ? @dictionary.named(place) : @dictionary.stack(@stacks.node(segment, place))
            next yield stack, identity(labels), values if values.key?(:captures)

            sum = sums[[stack, identity(labels)]] ||= Hash.new(0)
            values.each { |weight, value| sum[weight] += value }
          end
          sums.each { |(stack, identity), values| block.call(stack, identity, values) }
        end

        # What names a sample beside its stack: its attributes and its link. Rows in a row often have the same.
        # @return [Array(Array<Integer>, Integer)]
        def identity(labels)
          return @identity if labels.equal?(@labelled)

          @labelled = labels
          link = link(labels)
          labels = labels.reject { |name,| [TRACE, SPAN].include?(name) } if link.positive?
          # The process is the resource's.
          attributes = labels.filter_map { |name, value| @dictionary.attribute(key(name), value) unless name == :pid }
          @identity = [attributes, link]
        end

        def link(labels)
          trace, span = labels.values_at(TRACE, SPAN)
          return 0 unless trace&.match?(TRACE_ID) && span&.match?(SPAN_ID)

          @dictionary.link([trace].pack("H*"), [span].pack("H*"))
        end

        # A label of the program with a name that Pitwall itself uses gets the suffix "_label".
        def key(name) = OWN.fetch(name) { TAKEN.include?(name) ? "#{name}_label" : name }

        def head(segment, weight)
          type, period = @rows.period(weight)
          comments = @dictionary.attribute("pprof.profile.comment", @rows.comments([segment]))
          fields = { sample_type: value_type(*LabelledRows::TYPES.fetch(weight)), period_type: value_type(*type),
                     period: period, attribute_indices: [comments] }
          start = segment.header.started_at_ns
          start ? { **fields, time_unix_nano: start, duration_nano: segment.stat("elapsed_ns") } : fields
        end

        def value_type(name, unit)
          Messages::ValueType.new(type_strindex: @dictionary.string(name), unit_strindex: @dictionary.string(unit))
        end

        # The process, by OpenTelemetry's names.
        def attributes(segment)
          header = segment.header
          ruby = header.ruby.select { |_, value| value.is_a?(String) }
          { "service.name" => header.program || "unknown_service:ruby",
            "process.pid" => header.pid, "process.parent_pid" => header.ppid,
            "process.runtime.name" => ruby["engine"], "process.runtime.version" => ruby["version"],
            "process.runtime.description" => ruby["description"],
            "vcs.ref.head.revision" => header.commit }.compact.map do |name, value|
            value = value.is_a?(Integer) ? { int_value: value } : { string_value: value }
            Messages::KeyValue.new(key: name, value: Messages::AnyValue.new(**value))
          end
        end
      end
    end
  end
end
