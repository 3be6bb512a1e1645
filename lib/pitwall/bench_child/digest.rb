# frozen_string_literal: true

module Pitwall
  module Bench
    # A digest of a case's value, by which `compare` checks that both sides return the same. It does not depend on
    # object ids, hash seeds or the order of a Hash.
    module Digest
      MAX_BYTES = 8 * 1024 * 1024
      MASK = (1 << 64) - 1

      class << self
        #: (untyped) -> String
        def of(value)
          text = String.new
          complete = catch(:too_long) { write(value, text, {}.compare_by_identity) && text.bytesize <= MAX_BYTES }
          note = complete ? "" : " (of its first part)"
          hash = hash(text.byteslice(0, MAX_BYTES))
          format("%<kind>s %<hash>016x%<note>s", kind: value.class.name || "Object", hash: hash, note: note)
        end

        private

        # FNV-1a over words of eight bytes.
        def hash(text)
          text << "\0" * (8 - (text.bytesize % 8))
          text.unpack("Q>*").inject(0xcbf29ce484222325) { |hash, word| ((hash ^ word) * 0x100000001b3) & MASK }
        end

        def write(value, text, parents)
          throw :too_long if text.bytesize > MAX_BYTES
          text << value.class.name.to_s << ":"
          case value
          when nil, true, false, Integer, Float, Symbol, Rational, Complex, Regexp then text << value.inspect.b
          when String then text << value.encoding.name << ":" << value.bytesize.to_s << ":" << value.b
          when Module then text << value.name.to_s.b
          when Proc, Method, UnboundMethod, IO, Thread then nil
          else write_parts(value, text, parents)
          end
          text << ";"
        end

        def write_parts(value, text, parents)
          return text << "again" if parents.key?(value)

          parents[value] = true
          case value
          when Array then value.each { |item| write(item, text, parents) }
          when Hash
            pairs = value.map { |pair| pair.inject(String.new) { |written, part| write(part, written, parents) } }
            text << pairs.sort.join
          when Range then [value.begin, value.end, value.exclude_end?].each { |part| write(part, text, parents) }
          when Exception then write(value.message, text, parents)
          when Time then text << value.to_r.to_s << value.utc_offset.to_s
          else write_fields(value, text, parents)
          end
          parents.delete(value)
        end

        def write_fields(value, text, parents)
          # Before Ruby 3.0, Data was a class for C extensions.
          record = value.is_a?(Struct) || (defined?(Data) && Data.is_a?(Class) && value.is_a?(Data))
          return write(value.to_h, text, parents) if record && value.respond_to?(:to_h)

          if defined?(Set) && value.is_a?(Set)
            return write(value.to_a.map { |item| write(item, String.new, parents) }.sort, text, parents)
          end

          value.instance_variables.sort.each do |name|
            text << name.to_s.b
            write(value.instance_variable_get(name), text, parents)
          end
        end
      end
    end
  end
end
