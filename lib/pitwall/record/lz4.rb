# frozen_string_literal: true

module Pitwall
  module Record
    # Decodes LZ4 blocks. Uses the extension if it is there, else Ruby, which is slower.
    # @api private
    module LZ4
      MIN_MATCH = 4
      private_constant :MIN_MATCH

      # @param stored [String] one LZ4 block
      # @param raw_size [Integer] the exact number of decoded bytes
      # @raise [ArgumentError] when the block decodes to another number of bytes, or not at all
      #: (String, Integer) -> String
      def self.decompress(stored, raw_size)
        native? ? Pitwall::Native.lz4_decompress(stored, raw_size) : decode(stored, raw_size)
      end

      # Whether the extension is there and decodes LZ4.
      #: () -> bool
      def self.native?
        return @native unless @native.nil?

        @native = begin
          require "pitwall/version"
          require "pitwall/native"
          Pitwall.load_native!
          Pitwall::Native.respond_to?(:lz4_decompress)
        rescue Pitwall::Error, LoadError
          false
        end
      end

      # Decodes in Ruby. The high four bits of a token are the number of literal bytes, its low four bits the length of
      # the match behind them.
      #: (String, Integer) -> String
      def self.decode(stored, raw_size)
        out = String.new(capacity: raw_size, encoding: Encoding::BINARY)
        size = stored.bytesize
        at = 0
        while at < size
          token = stored.getbyte(at)
          at += 1
          literals, at = length(stored, at, token >> 4)
          raise ArgumentError, "literals run past the end" if at + literals > size || out.bytesize + literals > raw_size

          out << stored.byteslice(at, literals)
          at += literals
          break if at == size # a block ends with literals

          raise ArgumentError, "a match has no offset" if at + 2 > size

          offset = stored.getbyte(at) | stored.getbyte(at + 1) << 8
          match, at = length(stored, at + 2, token & 15)
          copy(out, offset, match + MIN_MATCH, raw_size)
        end
        raise ArgumentError, "#{out.bytesize} bytes instead of #{raw_size}" unless out.bytesize == raw_size

        out
      end

      # A count of 15 continues in further bytes, up to and including the first that is not 255.
      def self.length(stored, at, count)
        return [count, at] if count < 15

        loop do
          byte = stored.getbyte(at) or raise ArgumentError, "a length runs past the end"
          at += 1
          count += byte
          return [count, at] if byte < 255
        end
      end
      private_class_method :length

      # Copies a match. It may overlap the bytes that it writes: offset 1 repeats the last byte.
      def self.copy(out, offset, count, raw_size)
        from = out.bytesize - offset
        raise ArgumentError, "a match points before the start" if offset.zero? || from.negative?
        raise ArgumentError, "a match runs past the end" if out.bytesize + count > raw_size

        if offset >= count
          out << out.byteslice(from, count)
        else
          pattern = out.byteslice(from, offset)
          out << (pattern * (count / offset)) << pattern.byteslice(0, count % offset)
        end
      end
      private_class_method :copy
    end
    private_constant :LZ4
  end
end
