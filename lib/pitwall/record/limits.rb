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
      STATE = 255
      # Over all segments of one file.
      SEGMENTS = 10_000
      STRING_BYTES = 256 * 1024 * 1024
      STRINGS = 4_000_000
      FRAMES = 2_000_000
      NODES = 8_000_000
      THREADS = 1_000_000
      # Ids that salvage takes as lost between two chunks; more is damage of another kind.
      GAP = 1_000_000
      # Distinct (thread, state, stack) weights.
      WEIGHTS = 8_000_000
      # Garbage collection runs.
      COLLECTIONS = 1_000_000
      # Places of allocation, with their counters twice that.
      SITES = 2_000_000
      # Numbers of living objects, by site and point in time.
      LIVING = 20_000_000
      # Label sets by number, and labels of them all.
      LABELS = 200_000
      # Pieces of work told one by one.
      MARKS = 2_000_000
      # Queries, their sums by labels, and their parts of pieces of work.
      QUERIES = 4_000_000
      # Names of system calls; Linux has some 400.
      SYSCALLS = 4096
      # Bytes that looking for the next whole chunk may checksum, times the file's size, plus RAW.
      SCAN_FACTOR = 8
    end
    private_constant :Limits
  end
end
