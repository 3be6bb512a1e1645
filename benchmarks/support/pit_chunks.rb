# frozen_string_literal: true

module Benchmarks
  # How many bytes each type of chunk takes in a recording, headers included. Reads the frame of the format only
  # (doc/record-format.md), so that it does not depend on the reader it stands beside.
  module PitChunks
    MAGIC_BYTES = 10
    HEADER_BYTES = 20
    # What a recording holds once for each name and stack, not for each sample.
    TABLES = %w[HEAD STRS FRAM NODE THRD].freeze

    #: (String) -> Hash[String, Integer]
    def self.sizes(path)
      data = File.binread(path)
      at = 0
      sizes = Hash.new(0)
      while at < data.bytesize
        if data.byteslice(at, 8) == "PITWALL "
          at += MAGIC_BYTES
          next
        end
        type, stored = data.byteslice(at, HEADER_BYTES).unpack("a4x4V")
        sizes[type] += HEADER_BYTES + stored
        at += HEADER_BYTES + stored
      end
      sizes
    end

    #: (String) -> [Integer, Integer]  bytes of the tables, bytes of all else
    def self.split(path)
      sizes(path).partition { |type, _bytes| TABLES.include?(type) }.map { |part| part.sum(&:last) }
    end
  end
end
