# frozen_string_literal: true

require "protobug"

module Pitwall
  module Show
    module Export
      # The messages of pprof's format, without fields that Pitwall never writes.
      # Source of the field numbers: https://github.com/google/pprof/tree/main/proto
      # @api private
      module PprofMessages
        # Message → field → number and type. A String is the name of another message; an Array is a repeated field.
        FIELDS = {
          "ValueType" => { type: [1, :int64], unit: [2, :int64] },
          "Label" => { key: [1, :int64], str: [2, :int64], num: [3, :int64], num_unit: [4, :int64] },
          "Sample" => { location_id: [1, [:uint64]], value: [2, [:int64]], label: [3, ["Label"]] },
          "Mapping" => { id: [1, :uint64], filename: [5, :int64],
                         has_functions: [7, :bool], has_filenames: [8, :bool], has_line_numbers: [9, :bool] },
          "Line" => { function_id: [1, :uint64], line: [2, :int64] },
          "Location" => { id: [1, :uint64], mapping_id: [2, :uint64], line: [4, ["Line"]] },
          "Function" => { id: [1, :uint64], name: [2, :int64], filename: [4, :int64], start_line: [5, :int64] },
          "Profile" => { sample_type: [1, ["ValueType"]], sample: [2, ["Sample"]], mapping: [3, ["Mapping"]],
                         location: [4, ["Location"]], function: [5, ["Function"]], string_table: [6, [:string]],
                         time_nanos: [9, :int64], duration_nanos: [10, :int64],
                         period_type: [11, "ValueType"], period: [12, :int64],
                         comment: [13, [:int64]], default_sample_type: [14, :int64] }
        }.freeze
        private_constant :FIELDS

        # A message whose fields are given by name.
        class Message
          # A message with these fields. A field with nil stays unset.
          #: (**untyped) -> Message
          def self.new(**fields)
            message = super()
            fields.each do |name, value|
              if value.is_a?(Array) then value.each { |one| message.public_send(:"add_#{name}", one) }
              elsif !value.nil? then message.public_send(:"#{name}=", value)
              end
            end
            message
          end
        end
        private_constant :Message

        # Declares a field. Repeated numbers are packed, as in proto3. A field with 0 is not written.
        def self.define(message, name, number, type)
          list = type.is_a?(Array)
          type = type.first if list
          options = type.is_a?(String) ? { type: :message, message_type: "pitwall.pprof.#{type}" } : { type: type }
          options[:packed] = true if list && %i[int64 uint64].include?(type)
          return message.repeated(number, name.to_s, **options) if list

          message.optional(number, name.to_s, proto3_optional: false, **options)
        end
        private_class_method :define

        FIELDS.each do |name, fields|
          message = Class.new(Message) { extend Protobug::Message }
          fields.each { |field, (number, type)| define(message, field, number, type) }
          const_set(name, message)
        end
      end
      private_constant :PprofMessages
    end
  end
end
