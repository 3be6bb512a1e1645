# frozen_string_literal: true

require "pitwall/record/chunk"

module Pitwall
  module Record
    # A loaded file that defines methods, or its first use.
    #
    # path:  the file, as in Load
    # used:  0: it was loaded and is watched; 1: a method or a block of it ran after it had been loaded
    # at_ns: ns since the recording's start
    FileUse = Struct.new(:path, :used, :at_ns)

    module Chunks
      # USED: which files were used. A forked child has rows of files that its parent loaded.
      class FileUses < Chunk
        type "USED"
        limit :file_uses, 4_000_000
        # @return [Array<FileUse>] in the order of the recording
        offers :file_uses

        def initialize(...)
          super
          @file_uses = []
        end

        #: (Columns) -> void
        def read_columns(columns)
          values = columns_of(columns, FileUse)
          take(:file_uses, values.first.size)
          @file_uses.concat(build_all(FileUse, values))
        end

        def settle(_payload_at) = name_strings(@file_uses, :path)
      end
    end

    class Segment
      # Were uses of files recorded? (`used` of BOOT)
      #: () -> bool
      def uses? = boot_sums["used"] == true
    end
  end
end
