# frozen_string_literal: true

module Pitwall
  module Fastboot
    # What tzinfo makes of a file of a time zone, as bytes: the Array of its transitions, or the one offset of a zone
    # that has no transitions. Reading makes new objects. Objects that were the same object are the same object again.
    #
    # | bytes | what |
    # |---|---|
    # | 2 | number of offsets |
    # | 4 for each offset | seconds from UTC, without daylight saving time |
    # | 4 for each offset | seconds of daylight saving time |
    # | 1 for each offset | bytes of its abbreviation |
    # | the sum of these | abbreviations in UTF-8 |
    # | 1, 1, 8 for each transition | number of its offset, of the offset before it; seconds since 1970 |
    #
    # Numbers are little-endian. Transitions are written and read by ext/fastboot/zone_data.c.
    # @api private
    module ZoneData
      OFFSET = %i[@base_utc_offset @std_offset @abbreviation @observed_utc_offset].freeze
      SECONDS = (-(1 << 31)..(1 << 31) - 1)
      LONGEST = 255 # bytes of an abbreviation
      private_constant(*constants(false))

      class << self
        # @param value what the reader has returned
        # @param reader [TZInfo::DataSources::ZoneinfoReader]
        # @return [String, nil] nil: it is not what tzinfo usually makes
        #: (untyped, untyped, Hash[Symbol, untyped]?) -> String?
        def dump(value, reader, _keywords = nil)
          return write([value]) if offset?(value, reader)
          return unless value.instance_of?(Array) && !value.empty? && !value.frozen? && value.instance_variables.empty?

          transitions, offsets = Native.zone_bytes(value, ::TZInfo::TimezoneTransition)
          write(offsets, transitions) if offsets&.all? { |offset| offset?(offset, reader) }
        end

        # @return [Array, TZInfo::TimezoneOffset]
        #: (String, untyped, Hash[Symbol, untyped]?) -> untyped
        def load(bytes, reader, _keywords = nil)
          count = bytes.unpack1("S<")
          fields = bytes.unpack("l<#{2 * count}C#{count}", offset: 2)
          deduper = deduper_of(reader)
          start = 2 + (9 * count)
          offsets = Array.new(count) do |i|
            text = bytes.byteslice(start, fields[(2 * count) + i]).force_encoding(Encoding::UTF_8)
            start += text.bytesize
            ::TZInfo::TimezoneOffset.new(fields[i], fields[count + i], deduper.dedupe(text))
          end
          return offsets.first if start == bytes.bytesize

          Native.zone_transitions(bytes.byteslice(start..), offsets, ::TZInfo::TimezoneTransition)
        end

        private

        def write(offsets, transitions = "")
          texts = offsets.map(&:abbreviation)
          seconds = offsets.map(&:base_utc_offset) + offsets.map(&:std_offset)
          [[offsets.size, *seconds, *texts.map(&:bytesize)].pack("S<l<#{seconds.size}C*"), *texts.map(&:b), transitions]
            .join
        end

        def offset?(value, reader)
          return false unless value.instance_of?(::TZInfo::TimezoneOffset) && !value.frozen?
          return false unless value.instance_variables == OFFSET && abbreviation?(value.abbreviation, reader)

          base, saved, observed = value.base_utc_offset, value.std_offset, value.observed_utc_offset
          [base, saved].all? { |seconds| seconds.is_a?(Integer) && SECONDS.cover?(seconds) } && observed == base + saved
        end

        # Is it the one String that this reader has for the text?
        def abbreviation?(text, reader)
          text.instance_of?(String) && text.frozen? && text.encoding == Encoding::UTF_8 && text.bytesize <= LONGEST &&
            deduper_of(reader).dedupe(text.dup).equal?(text)
        end

        def deduper_of(reader) = reader.instance_variable_get(:@string_deduper)
      end
    end
  end
end
