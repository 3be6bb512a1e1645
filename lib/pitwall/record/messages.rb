# frozen_string_literal: true

module Pitwall
  module Record
    # Protobuf messages of other tools' formats, of their official definitions (script/proto/). Exports write them,
    # imports read them. The gem google-protobuf is loaded with the first of them.
    #
    #   Messages::Pprof::Profile.decode(bytes)
    # @api private
    module Messages
      autoload :Otlp, "pitwall/record/messages/otlp"
      autoload :Pprof, "pitwall/record/messages/pprof"

      # Defines a constant for each message of a set of definitions.
      # @param set [String] a FileDescriptorSet in base64
      #: (Module, String) -> void
      def self.define(namespace, set)
        require "google/protobuf"
        require "google/protobuf/descriptor_pb"
        pool = Google::Protobuf::DescriptorPool.generated_pool
        files = Google::Protobuf::FileDescriptorSet.decode(set.unpack1("m")).file
        files.each { |file| pool.add_serialized_file(Google::Protobuf::FileDescriptorProto.encode(file)) }
        files.each do |file|
          file.message_type.each do |message|
            namespace.const_set(message.name, pool.lookup("#{file.package}.#{message.name}").msgclass)
          end
        end
      end
    end
  end
end
