# frozen_string_literal: true

require "pitwall/record/frame"
require "pitwall/record/import/addresses"
require "pitwall/record/import/format"
require "pitwall/record/messages"

module Pitwall
  module Record
    module Import
      class Otlp < Format
        # The tables that all profiles of a file share. Each index is checked when it is used.
        # @api private
        class Dictionary
          include Addresses
          include Values

          # Table → its message; entry 0 of each has no field set. Entry 0 of the links may have ids of zero bytes.
          TABLES = { mapping_table: :Mapping, location_table: :Location, function_table: :Function, link_table: :Link,
                     attribute_table: :KeyValueAndUnit, stack_table: :Stack }.freeze
          # Values of profile.frame.type: code of a compiler.
          NATIVE = %w[native kernel rust go].freeze
          BUILD_ID = "process.executable.build_id.gnu"
          private_constant :TABLES, :NATIVE, :BUILD_ID

          # @param tables [ProfilesDictionary]
          # @raise [Malformed] a table's first entry is not empty
          #: (untyped) -> void
          def initialize(tables)
            @strings = tables.string_table
            @tables = TABLES.keys.to_h { |name| [name, tables[name.to_s]] }
            wrong("the first string", "empty", @strings[0]) unless @strings[0] == ""
            TABLES.each { |name, message| check_first(name, message) }
            @texts = {}
            @frames = {}
          end

          # @raise [Malformed] there is no such string
          #: (Integer) -> String
          def text(number) = @texts[number] ||= @strings[index(number, @strings.size, "a string's number")]

          # Names and values of a sample, a mapping or a location.
          #: (Array[Integer]) -> Hash[String, untyped]
          def attributes(numbers)
            numbers.each_with_object({}) do |number, found|
              attribute = entry(:attribute_table, number, "an attribute's number")
              value = plain(attribute.value)
              found[text(attribute.key_strindex)] = value unless value.nil?
            end
          end

          # Names and values of a resource.
          #: (Array[untyped]) -> Hash[String, untyped]
          def key_values(pairs)
            pairs.each_with_object({}) do |pair, found|
              key = pair.key.empty? ? text(pair.key_strindex) : pair.key
              value = plain(pair.value)
              found[key] = value unless value.nil?
            end
          end

          # The labels that a link to a span becomes.
          #: (Integer) -> Hash[String, String]
          def link(number)
            return {} if number.zero?

            link = entry(:link_table, number, "a link's number")
            { "trace_id" => link.trace_id, "span_id" => link.span_id }.transform_values { |bytes| bytes.unpack1("H*") }
          end

          # @return [Integer] the number
          # @raise [Malformed] there is no such stack
          #: (Integer) -> Integer
          def check_stack(number)
            number.zero? ? 0 : index(number, @tables[:stack_table].size, "a stack's number")
          end

          # Numbers of the places of a stack, from the root to the leaf. Stack 0 is none.
          #: (Integer) -> Array[Integer]
          def stack(number)
            return [-1] if number.zero?

            places = @tables[:stack_table][number].location_indices
            places.size.zero? ? [-1] : places.to_a.reverse!
          end

          # The frames of a place, the last one inlined into the others: name, path, first line, line, kind.
          #: (Integer) -> Array[[String, String, Integer, Integer, Integer]]
          def [](place)
            return [[Format::NO_STACK, "", 0, 0, Frame::PITWALL]] if place.negative?

            frames(entry(:location_table, place, "a location's number"))
          end

          # Shared objects with build ids: path → id in hexadecimal. An object of which there are several has none.
          #: () -> Hash[String, String]
          def build_ids
            found = Hash.new { |all, path| all[path] = [] }
            @tables[:mapping_table].each do |mapping|
              build_id = attributes(mapping.attribute_indices)[BUILD_ID]
              found[text(mapping.filename_strindex)] |= [build_id.is_a?(String) ? build_id : ""]
            end
            found.select { |_, ids| ids.size == 1 && ids != [""] }.transform_values(&:first)
          end

          private

          def entry(table, number, what)
            entries = @tables[table]
            entries[index(number, entries.size, what)]
          end

          def check_first(name, message)
            first = @tables[name][0] or return
            return if first == Messages::Otlp.const_get(message).new
            return if name == :link_table && [first.trace_id, first.span_id].all? { |id| id.delete("\0").empty? }

            raise Malformed, "is damaged: the first entry of #{name} is not empty"
          end

          # Text, a number or a boolean as text; nil of what is no label.
          def plain(value)
            case value&.value
            when :string_value then value.string_value
            when :string_value_strindex then text(value.string_value_strindex)
            when :int_value then value.int_value
            when :bool_value then value.bool_value.to_s
            when :double_value then value.double_value.to_s
            when :bytes_value then value.bytes_value.unpack1("H*")
            end
          end

          def frames(location)
            mapping = entry(:mapping_table, location.mapping_index, "a location's mapping") if
              location.mapping_index.nonzero?
            object = mapping ? text(mapping.filename_strindex) : ""
            if location.lines.empty?
              return [[unnamed(object, location.address, mapping), object, 0, 0, Frame::NATIVE]]
            end

            type = attributes(location.attribute_indices)["profile.frame.type"]
            location.lines.map { |line| frame(line, location, object, type) }.reverse!
          end

          def frame(line, location, object, type)
            function = entry(:function_table, line.function_index, "a location's function")
            name, path = text(function.name_strindex), text(function.filename_strindex)
            name = text(function.system_name_strindex) if name.empty?
            kind = kind(name, path, location, object, type)
            path = object if kind == Frame::NATIVE && path.empty?
            [name, path, line(function.start_line), kind == Frame::NATIVE ? 0 : line(line.line), kind]
          end

          # Where the type is not told, as of other formats.
          def kind(name, path, location, object, type)
            native = type ? NATIVE.include?(type) : compiled?(location.address, path) || !object.empty? && path.empty?
            native ? Frame::NATIVE : Format.kind(name, path)
          end
        end
        private_constant :Dictionary
      end
    end
  end
end
