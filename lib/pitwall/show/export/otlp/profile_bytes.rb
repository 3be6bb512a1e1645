# frozen_string_literal: true

require "google/protobuf/any_pb"
require "google/protobuf/wrappers_pb"
require "pitwall/record/messages"
require "pitwall/show/export"

module Pitwall
  module Show
    module Export
      class Otlp < Format
        # One message Profile, encoded in pieces: a million samples are 20 MB as bytes and 300 MB as objects.
        # @api private
        class ProfileBytes
          # Number of samples that are objects at a time.
          BATCH = 4096
          Messages = Record::Messages::Otlp
          private_constant :BATCH, :Messages

          # In protobuf an embedded message is written as a field of bytes is. So a message of the library's own that
          # has nothing but a field of bytes embeds what is encoded already: BytesValue as field 1, Any as field 2.
          class << self
            # @param tables [ProfilesDictionary] a part of the dictionary
            #: (untyped) -> String
            def dictionary(tables) = Messages::ProfilesData.new(dictionary: tables).to_proto

            # ProfilesData with one resource.
            # @param resource [Hash] fields of ResourceProfiles
            # @param scope [Hash] fields of ScopeProfiles
            # @param profiles [Array<ProfileBytes>]
            #: (Hash[Symbol, untyped], Hash[Symbol, untyped], Array[ProfileBytes]) -> String
            def resource(resource, scope, profiles)
              scope = profiles.inject(Messages::ScopeProfiles.new(**scope).to_proto) do |bytes, profile|
                bytes << second(profile.bytes)
              end
              first(Messages::ResourceProfiles.new(**resource).to_proto << second(scope))
            end

            private

            def first(bytes) = Google::Protobuf::BytesValue.new(value: bytes).to_proto
            def second(bytes) = Google::Protobuf::Any.new(value: bytes).to_proto
          end

          # @param head [Hash] the profile's other fields
          #: (**untyped) -> void
          def initialize(**head)
            @bytes = Messages::Profile.new(**head).to_proto
            @samples = []
            @empty = true
          end

          #: (Integer, Array[Integer], Integer, Integer) -> void
          def add(stack, attributes, link, value)
            @empty = false
            @samples << Messages::Sample.new(stack_index: stack, attribute_indices: attributes, link_index: link,
                                             values: [value])
            flush if @samples.size >= BATCH
          end

          #: () -> bool
          def empty? = @empty

          #: () -> String
          def bytes
            flush
            @bytes
          end

          private

          def flush
            @bytes << Messages::Profile.new(samples: @samples).to_proto
            @samples = []
          end
        end
        private_constant :ProfileBytes
      end
    end
  end
end
