# frozen_string_literal: true

require "google/protobuf"
require "google/protobuf/descriptor_pb"

module Pitwall
  module Show
    module Export
      # The messages of pprof's format, described here by the public format's field numbers
      # (https://github.com/google/pprof/tree/main/proto), in a pool of their own: another library may have them, too.
      # Fields that Pitwall never writes are left out.
      # @api private
      module PprofMessages
        PACKAGE = "pitwall.pprof"
        # Message → field → number and type; the name of another message, or of a type; repeated ones in an Array.
        FIELDS = {
          "ValueType" => { type: [1, :INT64], unit: [2, :INT64] },
          "Label" => { key: [1, :INT64], str: [2, :INT64], num: [3, :INT64], num_unit: [4, :INT64] },
          "Sample" => { location_id: [1, [:UINT64]], value: [2, [:INT64]], label: [3, ["Label"]] },
          "Mapping" => { id: [1, :UINT64], filename: [5, :INT64], has_functions: [7, :BOOL], has_filenames: [8, :BOOL], has_line_numbers: [9, :BOOL] },
          "Line" => { function_id: [1, :UINT64], line: [2, :INT64] },
          "Location" => { id: [1, :UINT64], mapping_id: [2, :UINT64], line: [4, ["Line"]] },
          "Function" => { id: [1, :UINT64], name: [2, :INT64], filename: [4, :INT64], start_line: [5, :INT64] },
          "Profile" => { sample_type: [1, ["ValueType"]], sample: [2, ["Sample"]], mapping: [3, ["Mapping"]], location: [4, ["Location"]],
                         function: [5, ["Function"]], string_table: [6, [:STRING]], time_nanos: [9, :INT64], duration_nanos: [10, :INT64],
                         period_type: [11, "ValueType"], period: [12, :INT64], comment: [13, [:INT64]], default_sample_type: [14, :INT64] }
        }.freeze

        def self.field(name, number, type)
          repeated = type.is_a?(Array)
          type = type.first if repeated
          own = type.is_a?(String)
          Google::Protobuf::FieldDescriptorProto.new(
            name: name.to_s, number: number, label: repeated ? :LABEL_REPEATED : :LABEL_OPTIONAL,
            type: own ? :TYPE_MESSAGE : :"TYPE_#{type}", **(own ? { type_name: ".#{PACKAGE}.#{type}" } : {})
          )
        end

        def self.pool
          messages = FIELDS.map do |name, fields|
            Google::Protobuf::DescriptorProto.new(name: name, field: fields.map { |field, (number, type)| field(field, number, type) })
          end
          file = Google::Protobuf::FileDescriptorProto.new(name: "pitwall/pprof.proto", package: PACKAGE, syntax: "proto3", message_type: messages)
          Google::Protobuf::DescriptorPool.new.tap { |pool| pool.add_serialized_file(file.to_proto) }
        end
        private_class_method :field, :pool

        POOL = pool
        FIELDS.each_key { |name| const_set(name, POOL.lookup("#{PACKAGE}.#{name}").msgclass) }
        private_constant :POOL, :PACKAGE
      end
      private_constant :PprofMessages
    end
  end
end
