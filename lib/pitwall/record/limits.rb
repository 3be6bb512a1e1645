# frozen_string_literal: true

module Pitwall
  module Record
    # Limits of the framing and of values. Files are not trusted, and 64 KiB may decompress to 16 MiB, so every table
    # that grows with the file has a limit. Real recordings stay far below. The chunk types in record/chunks/ declare
    # the limits of their tables.
    # @api private
    module Limits
      # Bytes of a chunk after decompression. Part of the format.
      RAW = 16 * 1024 * 1024
      # Bytes of a stored chunk: LZ4's worst case for RAW.
      STORED = RAW + RAW / 255 + 64
      # Every value of a column is smaller. A day is 2**47 ns; larger integers than 2**62 need memory of their own.
      VALUE = 1 << 60
      # Segments of one file.
      SEGMENTS = 10_000
      # Ids that may be missing between two chunks when salvage skipped a chunk. A larger gap is other damage.
      GAP = 1_000_000
      # The search for the next whole chunk may checksum this many times the bytes of the file, plus RAW.
      SCAN_FACTOR = 8
    end
    private_constant :Limits
  end
end
