# frozen_string_literal: true

require "pitwall/record/import/values"
require "pitwall/record/malformed"

module Pitwall
  module Record
    module Import
      # What the figures of a profile's samples become, by the names and units that tools give to them. Several may be
      # taken: counts and times of the same samples, objects and their bytes.
      # @api private
      class Figures
        # Weight of a recording → names of figures, likeliest first. Times and bytes by other names count by their unit.
        NAMES = {
          captures: %w[samples sample events contentions goroutine threadcreate cpu-samples alloc-samples],
          cpu: %w[cpu cpu-time cpu_time on-cpu on_cpu oncpu],
          wall: %w[wall wall-time wall_time delay off_cpu off-cpu time],
          calls: %w[calls], wait: %w[wait],
          objects: %w[alloc_objects allocations objects allocated_objects],
          bytes: %w[alloc_space alloc-size bytes allocated_space space],
          retained: %w[inuse_objects heap-live-samples], retained_bytes: %w[inuse_space heap-live-size],
          gc: %w[gc]
        }.freeze
        BY_NAME = NAMES.flat_map { |weight, names| names.map { |name| [name, weight] } }.to_h.freeze
        TIMES = %i[cpu wall wait gc].freeze
        OF_SITES = %i[objects bytes retained retained_bytes gc].freeze
        BYTES = { "bytes" => 1, "byte" => 1, "by" => 1, "kilobytes" => 1024, "kb" => 1024, "kib" => 1024,
                  "megabytes" => 1 << 20, "mb" => 1 << 20, "mib" => 1 << 20 }.freeze
        private_constant :NAMES, :BY_NAME, :TIMES, :OF_SITES, :BYTES

        # @return [Array<String>] what was left out, in sentences
        attr_reader :warnings

        # @param types [Array<[String, String]>] name and unit of each figure
        # @param type [String, nil] the one to take alone
        # @raise [Malformed] there is no such figure, or none that a recording holds
        #: (Array[[String, String]], ?type: String?) -> void
        def initialize(types, type: nil)
          @types = types
          @warnings = []
          check(type)
          @slots = types.map { |name, unit| slot(name, unit) if type.nil? || name == type }
          leave_out_repeated
          return if @slots.any?

          raise Malformed, "has no figure that a recording holds: it has #{described}"
        end

        # Weight → the sample's value, in ns or as a count. Figures that are 0 are left out.
        # @param values [Array<Integer>] in the order of the types
        #: (Array[Integer]) -> Hash[Symbol, Integer]
        def of(values)
          unless values.size == @slots.size
            raise Malformed, "is damaged: a sample has #{values.size} values for #{@slots.size} figures"
          end

          values.each_with_index.with_object({}) do |(value, at), found|
            weight = weight(at) or next
            found[weight] = amount(at, value) unless value.zero?
          end
        end

        # What the figure of that number becomes; nil: it is left out.
        #: (Integer) -> Symbol?
        def weight(at) = @slots.fetch(at)&.first

        # A value of the figure of that number, in ns or as a count.
        # @raise [Malformed] it is negative
        #: (Integer, Integer) -> Integer
        def amount(at, value)
          raise Malformed, "has a negative figure (#{value}), as differences have: import both sides" if value.negative?

          (value * @slots.fetch(at).last).round
        end

        # Whether there are samples, not only calls or objects.
        #: () -> bool
        def sampled? = weights.include?(:captures) || (!calls? && weights.intersect?(%i[cpu wall]))

        # Whether calls were counted.
        #: () -> bool
        def calls? = weights.include?(:calls)

        # The weights that are there.
        #: () -> Array[Symbol]
        def weights = @slots.compact.map(&:first)

        # Those of a sample's weights that objects have.
        #: (Hash[Symbol, Integer]) -> Hash[Symbol, Integer]
        def self.of_site(weights)
          names = { objects: :count, gc: :gc_ns }
          weights.slice(*OF_SITES).transform_keys { |name| names.fetch(name, name) }
        end

        private

        def check(type)
          return if type.nil? || @types.any? { |name,| name == type }

          raise Malformed, "has no figure #{type}: it has #{described}"
        end

        def described
          @types.empty? ? "none" : @types.map { |name, unit| "#{name} (#{unit})" }.join(", ").slice(0, 300)
        end

        # What a figure becomes: weight and factor; nil for units that no recording has.
        def slot(name, unit)
          ns, bytes = Values::UNITS[unit.downcase], BYTES[unit.downcase]
          known = BY_NAME[name.downcase]
          return [TIMES.include?(known) ? known : :wall, ns] if ns
          return [%i[bytes retained_bytes].include?(known) ? known : :bytes, bytes] if bytes
          return unless %w[count counts 1 samples objects calls none].include?(unit.downcase) || unit.start_with?("{")

          [TIMES.include?(known) || known.nil? ? :captures : known, 1]
        end

        # The first figure of a weight is taken.
        def leave_out_repeated
          seen = {}
          @slots.each_with_index do |slot, at|
            next if slot.nil?

            first = seen[slot.first] ||= at
            next if first == at

            @slots[at] = nil
            @warnings << "the figure #{@types[at].first} was left out, as #{@types[first].first} is of the same kind"
          end
        end
      end
      private_constant :Figures
    end
  end
end
