# frozen_string_literal: true

require "pitwall/record/malformed"

module Pitwall
  module Record
    module Import
      # Reads Ruby's Marshal format 4.8 into plain data: nil, true, false, Integer, Float, String, Array and Hash.
      # Symbols become strings. Anything else is refused by its name before it is built, so no class is looked up and no
      # method of a class runs. Memory is bounded by the size of the file: a count is compared with the bytes that are
      # left.
      # @api private
      class MarshalReader
        BEGINNING = "\x04\x08".b.freeze
        # Lists and hashes within each other.
        NESTING = 100
        # Bytes of the longest integer.
        LONGEST_INTEGER = 64
        # Type → what it is called when it is refused.
        REFUSED = { "o" => "an object", "u" => "an object", "U" => "an object", "S" => "a struct", "d" => "an object",
                    "C" => "an object", "e" => "an extended object", "c" => "a class", "m" => "a module",
                    "M" => "a class or module", "/" => "a regular expression" }.freeze
        # Types whose name follows as a symbol.
        NAMED = %w[o u U S d C e].freeze
        # Types whose name follows as bytes.
        CALLED = %w[c m M].freeze
        private_constant :BEGINNING, :NESTING, :LONGEST_INTEGER, :REFUSED, :NAMED, :CALLED

        # Whether the bytes begin as Marshal's.
        #: (String) -> bool
        def self.fits?(bytes) = bytes.start_with?(BEGINNING)

        #: (String) -> void
        def initialize(bytes)
          @bytes = bytes
          @at = BEGINNING.bytesize
          @symbols = []
          @objects = []
        end

        # The first value. Bytes after it are ignored.
        # @raise [Malformed]
        #: () -> untyped
        def read
          raise Malformed, "is not in the format of Marshal" unless self.class.fits?(@bytes)

          value(0)
        end

        private

        def value(depth)
          raise Malformed, "is Marshal nested deeper than #{NESTING} levels" if depth > NESTING

          type = take(1)
          case type
          when "0" then nil
          when "T" then true
          when "F" then false
          when "i" then integer
          when ":" then symbol
          when ";" then linked(@symbols, "symbol")
          when "@" then linked(@objects, "object")
          when "I" then with_variables(depth)
          else object(type, depth)
          end
        end

        # Values that a link may name later.
        def object(type, depth)
          case type
          when '"' then keep(in_utf8(take(size), "UTF-8"))
          when "f" then keep(float)
          when "l" then keep(large)
          when "[" then list(depth)
          when "{" then hash(depth)
          when "}" then hash(depth).tap { value(depth + 1) } # the default value
          else refuse(type)
          end
        end

        def keep(value)
          @objects << value
          value
        end

        def list(depth)
          found = keep([])
          size.times { found << value(depth + 1) }
          found
        end

        def hash(depth)
          found = keep({})
          size.times do
            key = value(depth + 1)
            raise Malformed, "is damaged: a key of a hash is a #{key.class}" unless plain?(key)

            found[key] = value(depth + 1)
          end
          found
        end

        def plain?(key) = key.is_a?(String) || key.is_a?(Integer) || key.nil? || key == true || key == false

        # A string, or a symbol, with its encoding.
        def with_variables(depth)
          type = take(1)
          return refuse(type) unless ['"', ":"].include?(type)

          bytes = take(size)
          (type == ":" ? @symbols : @objects) << (text = +"")
          encoding = variables(depth)["encoding"]
          text.replace(in_utf8(bytes, encoding.is_a?(String) ? encoding : "UTF-8")).freeze
        end

        def variables(depth) = size.times.to_h { [value(depth + 1), value(depth + 1)] }

        def in_utf8(bytes, encoding)
          text = bytes.force_encoding(encoding)
          unless text.encoding == Encoding::UTF_8
            text = text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace)
          end
          text.valid_encoding? ? text : text.scrub("?")
        rescue ArgumentError, EncodingError # an encoding that this Ruby does not know
          bytes.force_encoding(Encoding::UTF_8).scrub("?")
        end

        def symbol
          text = in_utf8(take(size), "UTF-8").freeze
          @symbols << text
          text
        end

        def linked(list, what)
          number = integer
          return list[number] if number.between?(0, list.size - 1)

          raise Malformed, "is damaged: it names #{what} #{number} of #{list.size}"
        end

        def float
          text = take(size)
          case text
          when "inf" then Float::INFINITY
          when "-inf" then -Float::INFINITY
          when "nan" then Float::NAN
          else Float(text.slice(/\A[^\0]*/), exception: false) || raise(Malformed, "is damaged: a number is unreadable")
          end
        end

        def large
          sign = take(1)
          bytes = size(2)
          raise Malformed, "is damaged: an integer has #{bytes} bytes" if bytes > LONGEST_INTEGER

          number = take(bytes).reverse.unpack1("H*").to_i(16)
          sign == "-" ? -number : number
        end

        # A count of things that have `unit` bytes each, at least. No more than are left in the file.
        def size(unit = 1)
          count = integer
          raise Malformed, "is damaged: a size is #{count}" if count.negative?

          count *= unit
          cut_off if count > @bytes.bytesize - @at
          count
        end

        # Marshal's integer: one byte for small ones, else the number of bytes and the bytes, the lowest first.
        def integer
          first = take(1).unpack1("c")
          return 0 if first.zero?
          return first - 5 if first > 4
          return first + 5 if first < -4

          number = take(first.abs).bytes.each_with_index.sum { |byte, at| byte << (8 * at) }
          first.negative? ? number - (1 << (8 * first.abs)) : number
        end

        def take(count)
          cut_off if count > @bytes.bytesize - @at
          @at += count
          @bytes.byteslice(@at - count, count)
        end

        def cut_off = raise(Malformed, "is Marshal and cut off")

        def refuse(type)
          what = REFUSED.fetch(type) { raise Malformed, "is damaged: Marshal has no type #{type.inspect}" }
          raise Malformed, "holds #{what}#{name(type)}: only plain data of Marshal is read"
        end

        # " of Gem::Version", where the name is readable.
        def name(type)
          text = if CALLED.include?(type) then in_utf8(take(size), "UTF-8")
                 elsif NAMED.include?(type) then class_name
                 end
          text.to_s.empty? ? "" : " (#{text.slice(0, 60)})"
        end

        def class_name
          case take(1)
          when ":" then symbol
          when ";" then linked(@symbols, "symbol")
          end
        end
      end
      private_constant :MarshalReader
    end
  end
end
