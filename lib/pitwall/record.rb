# frozen_string_literal: true

require "pitwall/errors"

module Pitwall
  # Reads recordings: `.pit` files as doc/record-format.md describes them.
  #
  # Reading order: record/chunk_stream.rb (framing, damage), record/columns.rb (integers), record/chunks.rb (the chunk
  # types, one file each), record/segment_builder.rb, record/segment.rb and record/recording.rb (what the rest of
  # Pitwall reads).
  module Record
    # The newest version of the format that this reader reads.
    VERSION = 1
    # The error for `-` and pipes. Salvage and the time line read parts of the file again, so it must be a file.
    NO_STREAM = "recordings are read from a file, not from standard input or a pipe: save it first, then name the file"

    # Reads a recording: names, stacks and sums of weights. The rows stay in the file (Segment#each_rows). Memory is
    # bounded by record/limits.rb and the limits of the chunk types, whatever the file says.
    #
    # @param path [String] a `.pit` file, or several joined by concatenation
    # @param salvage [Boolean] skip damaged parts instead of raising; Recording#warnings says what was skipped
    # @raise [UsageError] when there is no such file, or it is a directory
    # @raise [BadRecording] empty, unreadable, of another kind, newer than this reader, or damaged
    #: (String, ?salvage: bool) -> Recording
    def self.read(path, salvage: false)
      require "pitwall/record/reader"
      Reader.new(path, salvage: salvage).read
    end

    # Writes a recording (record/writer.rb).
    # @param io [IO] an empty file
    # @yield [Writer]
    # @raise [BadRecording] a figure that fits no recording
    # @api private
    #: (IO) { (untyped) -> void } -> void
    def self.write(io)
      require "pitwall/record/writer"
      writer = Writer.new(io)
      yield writer
      writer.close
    rescue Malformed => error
      raise BadRecording, error.message
    end

    # Writes a recording anew, with other rows in the place of its samples (record/writer/rewriting.rb).
    # @param io [IO] an empty file
    # @yield [Segment, SegmentWriter]
    # @raise [BadRecording]
    # @api private
    #: (String, IO) { (Segment, untyped) -> Hash[String, untyped] } -> void
    def self.rewrite(path, io, &block)
      require "pitwall/record/writer"
      Writer.rewrite(path, io, &block)
    end
  end
end
