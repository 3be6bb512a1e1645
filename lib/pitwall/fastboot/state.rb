# frozen_string_literal: true

module Pitwall
  module Fastboot
    # What a pack has, for `pitwall boot cache stats` and `verify`. A program that boots does not load this file.
    # @api private
    module State
      END_OF_PACK = "the end of the pack"

      module_function

      # @return the path, :pack (nil: none, and :why), and :last_boot, what the last boot did.
      #   :last_boot is nil if the pack is frozen, because programs then write nothing
      #: (Store) -> Hash[Symbol, untyped]
      def of(store)
        pack = store.open
        found = { path: store.path, pack: nil, why: nil, last_boot: LastBoot.read(store.folder) }
        return found.merge(why: pack) if pack.is_a?(String)

        bytes, _, records, frozen = pack.facts
        newest = Store.versions(pack).select(&:newest)
        code, data = newest.partition { |version| version.kind == Format::CODE }
        used = Format::HEADER_SIZE + newest.sum(&:bytes)
        found[:last_boot] = nil if frozen
        found.merge(pack: { files: newest.size, records: records, bytes: bytes, code_bytes: code.sum(&:size),
                            data_files: data.size, data_bytes: data.sum(&:size),
                            unused_bytes: bytes - used, frozen: frozen })
      end

      # Sorts the newest version of each file: current, changed (the file has other content), gone (there is no file),
      # damaged. Reads all files.
      # @return the paths of each of these four states. A damaged end of the pack has the path END_OF_PACK
      #: (Native::Pack) -> Hash[String, Array[String]]
      def check(pack)
        paths = { "current" => [], "changed" => [], "gone" => [], "damaged" => [] }
        bytes, valid, = pack.facts
        paths["damaged"] << END_OF_PACK if valid < bytes
        Store.versions(pack).select(&:newest).each { |version| paths[state(pack, version)] << version.path }
        paths
      end

      def state(pack, version)
        return "damaged" if pack.body(version.number).nil?

        digest, = Native.read(version.path)
        return "gone" if digest.nil?

        digest == version.digest ? "current" : "changed"
      end
    end
  end
end
