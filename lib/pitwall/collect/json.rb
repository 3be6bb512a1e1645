# frozen_string_literal: true

module Pitwall
  module Collect
    # Writes a recording's header as JSON. Loading the json library, which is a gem, would choose its version before the
    # program's Bundler does.
    # @api private
    module JSON
      ESCAPES = { "\"" => "\\\"", "\\" => "\\\\", "\n" => "\\n", "\r" => "\\r", "\t" => "\\t" }.freeze
      private_constant :ESCAPES

      # Takes hashes, arrays, strings, symbols, integers, floats, booleans and nil. Writes anything else by its to_s.
      #: (untyped) -> String
      def self.dump(value)
        case value
        when Hash then "{#{value.map { |key, item| "#{string(key)}:#{dump(item)}" }.join(",")}}"
        when Array then "[#{value.map { |item| dump(item) }.join(",")}]"
        when Integer, Float, true, false then value.to_s
        when nil then "null"
        else string(value)
        end
      end

      def self.string(value)
        text = value.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?")
        escaped = text.gsub(/["\\\u0000-\u001f]/) { |c| ESCAPES[c] || format("\\u%04x", c.ord) }
        "\"#{escaped}\""
      end
      private_class_method :string
    end
  end
end
