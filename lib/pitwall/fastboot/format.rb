# frozen_string_literal: true

module Pitwall
  module Fastboot
    # The bytes of a pack: a header, then records (ext/fastboot/pack.h reads them).
    # @api private
    module Format
      MAGIC = "PWBOOT1\n"
      RECORD_MAGIC = 0x43525746
      CODE = 1
      DATA = 3
      SEEN = { CODE => 2, DATA => 4 }.freeze # kinds of records without a body
      FROZEN = 1
      HEADER_SIZE = 64
      HEAD_SIZE = 128
      ALIGNMENT = 16

      module_function

      # What a pack depends on beside the options of the compiler and of the libraries. The description also names a JIT
      # and the parser.
      #: () -> String  32 bytes
      def identity
        facts = [RUBY_DESCRIPTION, RUBY_PLATFORM, RUBY_ENGINE, RUBY_PATCHLEVEL, RUBY_REVISION,
                 RbConfig::CONFIG["ruby_version"], RbConfig::CONFIG["prefix"]]
        Native.digest(facts.join("\0"))
      end

      # The path of a key's file, and its real path if that is another one (ext/fastboot/places.h).
      #: (String) -> Array[String]
      def paths(key) = key.b.split("\0")

      # Does the code have the paths of this key?
      #: (RubyVM::InstructionSequence, String) -> bool
      def code_of?(code, key) = [code.path, code.absolute_path].map { |path| path.to_s.b }.uniq == paths(key)

      # The name of a Ruby's pack, such as "boot-4.0.5-0f3a9c2be4d15a67.pack".
      #: (String) -> String
      def file_name(identity) = "boot-#{RUBY_VERSION}-#{identity.unpack1("H16")}.pack"

      #: (String, ?frozen: bool) -> String
      def header(identity, frozen: false)
        bytes = [MAGIC, identity, frozen ? FROZEN : 0, 0].pack("a8a32Q<2")
        bytes << [Native.sum(bytes)].pack("Q<")
      end

      # @param attributes [Array<Integer>] device, inode, size, mtime_ns, ctime_ns (0: don't rely on them)
      # @param body nil: a record without one
      #: (Integer, String, Integer, Array[Integer], String, Integer, ?String?) -> String
      def record(kind, key, options, attributes, digest, written_s, body = nil)
        kind = SEEN.fetch(kind) if body.nil?
        body ||= ""
        head = [RECORD_MAGIC, kind, key.bytesize, 0, body.bytesize, options, *attributes, digest, written_s,
                Native.sum(body)].pack("L<4Q<7a32Q<2")
        sum = Native.sum(head) ^ Native.sum(key)
        head << [sum].pack("Q<") << padded(key.b) << padded(body.b)
      end

      # Bytes of a record in the file.
      #: (Integer, Integer) -> Integer
      def record_size(key_size, body_size) = HEAD_SIZE + space(key_size) + space(body_size)

      def space(size) = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT

      def padded(bytes) = bytes.ljust(space(bytes.bytesize), "\0")
    end
  end
end
