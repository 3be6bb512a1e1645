# frozen_string_literal: true

module Pitwall
  module Record
    module Import
      # Frames of profiles that have addresses in shared objects (pprof, OTLP).
      # @api private
      module Addresses
        # Sources that a compiler makes native code of.
        COMPILED = /\.(?:c|cc|cpp|cxx|h|hpp|rs|s|S)\z/.freeze
        private_constant :COMPILED

        private

        # Code at an address whose source is unknown, or is a compiler's.
        #: (Integer, String) -> bool
        def compiled?(address, path) = path.match?(COMPILED) || (path.empty? && address.positive?)

        # The name of code at an address without a symbol, e.g. "libc.so.6+0x1234".
        # @param mapping [#memory_start, #file_offset, nil] where the object was in memory
        #: (String, Integer, untyped) -> String
        def unnamed(path, address, mapping)
          offset = address - (mapping ? mapping.memory_start - mapping.file_offset : 0)
          Kernel.format("%s+0x%x", path.empty? ? "(unknown)" : File.basename(path), offset.negative? ? address : offset)
        end
      end
      private_constant :Addresses
    end
  end
end
