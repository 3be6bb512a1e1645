# frozen_string_literal: true

module Pitwall
  module Fastboot
    # What a file looked like before Ruby read it. Says afterwards whether Ruby read the content that is there now.
    # `before`: digest and attributes. Set only if the attributes alone could miss a change.
    # @api private
    FileState = Struct.new(:path, :key, :attributes, :before) do
      # @return [FileState, nil] nil: it is no plain file with an absolute path
      #: (String) -> FileState?
      def self.of(path)
        key, attributes = Native.place(path)
        return if key.nil?

        new(path, key, attributes, (Native.read(path) unless Native.settled?(attributes.last)))
      end

      # @return [String, nil] a file's content; nil: it no longer has this digest
      #: (String, String) -> String?
      def self.content(path, digest)
        content = File.binread(path)
        content if Native.digest(content) == digest
      end

      # @return [Array, nil] the digest of the content that was read, and the attributes. nil: the file has changed
      #: () -> [String, Array[Integer]]?
      def unchanged
        digest, attributes = Native.read(path)
        return if digest.nil?

        [digest, attributes] if before ? before.first == digest : self.attributes == attributes
      end
    end
  end
end
