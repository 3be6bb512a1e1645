# frozen_string_literal: true

module Pitwall
  module Fastboot
    # Writes what a YAML or JSON file was parsed to, if it is plain: core classes without anything of their own. Reading
    # it (Native.plain_data, ext/fastboot/plain_data.c) makes equal objects. Objects that were the same object are the
    # same object again.
    #
    # | byte | then | object |
    # |---|---|---|
    # | n, t, f | | nil, true, false |
    # | i | number: 2n, or -2n - 1 below zero | Integer of at most 63 bits |
    # | b | length, decimal digits | another Integer |
    # | d | 8 bytes, little-endian | Float |
    # | y | length, bytes | Symbol |
    # | s, k | length, bytes in UTF-8 | String; key of a Hash |
    # | a | count, objects | Array |
    # | h | count, keys and values in turns | Hash |
    # | m | one of s, a, h | an object that occurs again |
    # | r | number, from 0 | the object of the n-th m |
    #
    # Numbers, lengths and counts are written as `w` of Array#pack.
    # @api private
    class PlainData
      DEEPEST = 100 # levels; deeper data is not written
      SMALL = (-(1 << 62)..(1 << 62) - 1)
      FIXED = { nil => "n", true => "t", false => "f" }.freeze
      STRING, KEY, ARRAY, HASH, MARK, REFERENCE = "s", "k", "a", "h", "m", "r"
      SYMBOL, INTEGER, LARGE_INTEGER, FLOAT = "y", "i", "b", "d"
      ASCII_TYPES = [SYMBOL, LARGE_INTEGER].freeze # that may have the encoding US-ASCII
      private_constant(*constants(false))

      # @param frozen is everything to be frozen? If not, nothing but keys is.
      # @return [String, nil] nil: it is not plain
      #: (untyped, frozen: bool) -> String?
      def self.dump(value, frozen:) = new(frozen).dump(value)

      def initialize(frozen)
        @frozen = frozen
        @times = {}.compare_by_identity # how often an object occurs
        @numbers = {}.compare_by_identity # of objects that occur again
        @bytes = String.new(encoding: Encoding::BINARY)
      end

      def dump(value)
        catch(:not_plain) do
          count(value, 0)
          write(value)
          @bytes
        end
      end

      private

      # Counts how often each object occurs that the program could tell from an equal one.
      def count(value, depth)
        case value
        when Array, Hash
          throw(:not_plain) if depth > DEEPEST
          return if count_object(value) > 1

          items = value.is_a?(Hash) ? value.each_value : value.each
          items.each { |item| count(item, depth + 1) }
        when String then count_object(value) unless @frozen # frozen ones are interned
        when Float, Integer then throw(:not_plain) if own_object?(value) && count_object(value) > 1
        end
      end

      # Most numbers are no objects: equal ones are the same. Of others, an alias of YAML is the same one.
      def own_object?(number) = !number.equal?(number * 1)

      def count_object(value) = @times[value] = (@times[value] || 0) + 1

      def write(value)
        case value
        when String, Array, Hash then write_object(value)
        when nil, true, false then @bytes << FIXED[value]
        when Symbol then write_text(SYMBOL, value.name)
        when Integer then write_integer(value)
        when Float then write_float(value)
        else throw(:not_plain)
        end
      end

      def write_object(value)
        known = @numbers[value]
        return write_number(REFERENCE, known) if known

        throw(:not_plain) if value.frozen? != @frozen || own?(value)
        if @times.fetch(value, 1) > 1
          @numbers[value] = @numbers.size
          @bytes << MARK
        end
        write_new(value)
      end

      def write_new(value)
        type = value.class
        return write_text(STRING, value) if type == String
        return write_array(value) if type == Array

        throw(:not_plain) if type != Hash || value.compare_by_identity? || value.default_proc || !value.default.nil?
        write_hash(value)
      end

      def write_array(value)
        write_number(ARRAY, value.size)
        value.each { |item| write(item) }
      end

      def write_hash(value)
        write_number(HASH, value.size)
        value.each do |key, item|
          write_key(key)
          write(item)
        end
      end

      # An Array or a Hash as a key may have changed since.
      def write_key(key)
        case key
        when String
          throw(:not_plain) unless key.instance_of?(String) && key.frozen? && !own?(key)
          write_text(KEY, key)
        when Array, Hash then throw(:not_plain)
        else write(key)
        end
      end

      # Has it variables of its own?
      def own?(value) = !value.instance_variables.empty?

      # NaN is equal to the same object only.
      def write_float(value)
        throw(:not_plain) if value.nan?
        @bytes << FLOAT << [value].pack("E")
      end

      def write_integer(value)
        return write_text(LARGE_INTEGER, value.to_s) unless SMALL.cover?(value)

        write_number(INTEGER, value.negative? ? (-2 * value) - 1 : 2 * value)
      end

      # A String that is read has the encoding UTF-8.
      def write_text(type, text)
        ascii = text.encoding == Encoding::US_ASCII && ASCII_TYPES.include?(type)
        throw(:not_plain) unless ascii || text.encoding == Encoding::UTF_8

        write_number(type, text.bytesize)
        @bytes << (text.ascii_only? ? text : text.b)
      end

      def write_number(type, number)
        @bytes << type << (number < 128 ? number : [number].pack("w"))
      end
    end
  end
end
