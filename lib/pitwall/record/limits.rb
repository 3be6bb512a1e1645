# frozen_string_literal: true

module Pitwall
  module Record
    # How much a recording may hold. A file is hostile until proved otherwise, and compression turns 64 KiB into 16 MiB,
    # so every table that grows with the file has an end. Real recordings stay far below.
    # @api private
    module Limits
      # Bytes of a chunk after decompression; the format promises it.
      RAW = 16 * 1024 * 1024
      # Bytes of a stored chunk: LZ4's worst case for RAW.
      STORED = RAW + RAW / 255 + 64
      # A column's value: a day in ns is 2**47, and a Fixnum ends at 2**62.
      VALUE = 1 << 60
      # Segments of one file.
      SEGMENTS = 10_000
      # Ids that salvage takes as lost between two chunks; more is damage of another kind.
      GAP = 1_000_000
      # Bytes that looking for the next whole chunk may checksum, times the file's size, plus RAW.
      SCAN_FACTOR = 8
    end
    private_constant :Limits
  end
end
