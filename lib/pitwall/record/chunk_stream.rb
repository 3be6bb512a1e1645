# frozen_string_literal: true

require "zlib"
require "pitwall/errors"
require "pitwall/record/limits"
require "pitwall/record/lz4"
require "pitwall/record/malformed"
require "pitwall/record/warning"

module Pitwall
  module Record
    # Reads the framing of a file: magic, chunk headers, checksums and compression. Finds the next whole chunk behind
    # damage.
    # @api private
    class ChunkStream
      MAGIC = /\APITWALL (\d{1,9})\n/n.freeze
      MAGIC_BYTES = 18
      HEADER = "a4 C a3 V V V"
      HEADER_BYTES = 20
      TYPE = /\A[A-Z]{4}\z/n.freeze
      COMPRESSED = 1
      # Bytes that may start a chunk or a segment.
      MARK = /PITWALL \d{1,9}\n|[A-Z]{4}[\x00\x01]\x00\x00\x00/n.freeze
      SCAN_BLOCK = 1024 * 1024
      private_constant :MAGIC, :MAGIC_BYTES, :HEADER, :HEADER_BYTES, :TYPE, :COMPRESSED, :MARK, :SCAN_BLOCK

      # The header of a chunk, with the chunk's offset in the file.
      Chunk = Struct.new(:type, :offset, :flags, :stored, :raw, :crc) do
        #: () -> Integer
        def finish = offset + HEADER_BYTES + stored
      end

      # @return [Array<Warning>] about what was cut off or skipped so far
      attr_reader :warnings

      #: (File, path: String, salvage: bool) -> void
      def initialize(io, path:, salvage:)
        @io = io
        @path = path
        @salvage = salvage
        @size = io.size
        @warnings = []
        @scan_left = @size * Limits::SCAN_FACTOR + Limits::RAW
      end

      # Reads the file from start to end.
      # @yield [:segment, offset, nil] a segment starts there
      # @yield [type, offset, payload] a chunk with a correct checksum; the block may raise Malformed
      # @raise [BadRecording]
      #: () { (Symbol | String, Integer, String?) -> void } -> void
      def each(&block)
        at = start
        at = step(at, &block) while at < @size
      end

      # The payload of a chunk that was read before.
      # @raise [BadRecording] when the file has changed since
      #: (Integer) -> String
      def payload_at(offset)
        payload(chunk_at(offset))
      rescue Malformed
        raise BadRecording, "#{@path}: changed while it was read: read it again"
      end

      private

      # The offset of the first segment. The first bytes tell whether the file is a recording.
      def start
        raise BadRecording, "#{@path}: is empty: nothing was recorded, or the disk was full" if @size.zero?

        head = bytes_at(0, MAGIC_BYTES)
        return 0 if magic_at(0, head)
        if "PITWALL #{VERSION}".start_with?(head)
          raise BadRecording, "#{@path}: ends after #{@size} bytes, before anything was recorded"
        end
        return 0 if @salvage

        message = "#{@path}: is not a recording (it does not start with \"PITWALL\")"
        raise BadRecording, message unless importable?

        raise BadRecording.new(message, advice: { import: @path })
      end

      # Is the file another tool's profile?
      def importable?
        require "pitwall/record/import"
        !Import.format_of(@path).nil?
      end

      # The magic at an offset, nil where there is none.
      # @raise [BadRecording] when the version is newer than this reader
      def magic_at(offset, head = bytes_at(offset, MAGIC_BYTES))
        magic = head[MAGIC] or return
        version = head[MAGIC, 1].to_i
        return magic if version == VERSION
        return if version.zero?

        raise BadRecording, "#{@path}: is in format version #{version} and this Pitwall reads up to #{VERSION}: " \
                            "upgrade pitwall"
      end

      # Reads the magic or chunk at an offset.
      # @return [Integer] the offset of the next one
      def step(at)
        if (magic = magic_at(at))
          yield :segment, at, nil
          return at + magic.bytesize
        end

        chunk = nil
        begin
          chunk = chunk_at(at)
          yield chunk.type, at, payload(chunk)
          chunk.finish
        rescue Malformed => e
          recover(at, chunk, e)
        end
      end

      def chunk_at(at)
        header = bytes_at(at, HEADER_BYTES)
        raise Malformed, "is cut off" if header.bytesize < HEADER_BYTES

        type, flags, zero, stored, raw, crc = header.unpack(HEADER)
        raise Malformed, "is no chunk" unless type.match?(TYPE)

        chunk = Chunk.new(type, at, flags, stored, raw, crc)
        raise Malformed, "has unknown flags" unless flags <= COMPRESSED && zero == "\0\0\0"
        raise Malformed, "is larger than #{Limits::RAW} bytes" if stored > Limits::STORED || raw > Limits::RAW
        raise Malformed, "has two sizes" if flags.zero? && stored != raw

        chunk
      end

      def payload(chunk)
        stored = stored_bytes(chunk)
        return stored if chunk.flags.zero?

        LZ4.decompress(stored, chunk.raw)
      rescue ArgumentError
        raise Malformed, "does not decompress"
      end

      def stored_bytes(chunk)
        raise Malformed, "is cut off" if chunk.finish > @size

        stored = bytes_at(chunk.offset + HEADER_BYTES, chunk.stored)
        raise Malformed, "fails its checksum" unless Zlib.crc32(stored) == chunk.crc

        stored
      end

      # Half a chunk at the end of a segment is no damage: the process was killed. Other damage is an error; salvage
      # skips it.
      # @return [Integer] the offset of the next magic or whole chunk
      def recover(at, chunk, error)
        found = next_whole(at + 1)
        finish = found || @size
        if cut_off?(at, chunk, found)
          message = "ends inside a chunk at byte #{at} (the process was killed or the disk was full): " \
                    "all before it was read"
          @warnings << Warning.new(code: :truncated, offset: at, bytes: finish - at, message: message)
        elsif @salvage
          message = "skipped #{finish - at} bytes at byte #{at}: #{what(at, chunk)} #{error.message}"
          @warnings << Warning.new(code: :skipped, offset: at, bytes: finish - at, message: message)
        else
          raise BadRecording.new("#{@path}: damaged at byte #{at}: #{what(at, chunk)} #{error.message}",
                                 advice: { salvage: nil })
        end
        finish
      end

      # Whether the file or the segment ends before the chunk does, by the size in the chunk's header.
      def cut_off?(at, chunk, found)
        return false if found && !magic_at(found)

        finish = found || @size
        return chunk.finish > finish if chunk

        finish - at < HEADER_BYTES && plausible_start?(at, finish)
      end

      # Whether the bytes may be the first half of a chunk header or of a magic.
      def plausible_start?(at, finish)
        head = bytes_at(at, [finish - at, 4].min)
        head.match?(/\A[A-Z]+\z/n)
      end

      # The name of what is at an offset, for messages.
      def what(at, chunk)
        type = chunk ? chunk.type : bytes_at(at, 4)
        type.match?(TYPE) ? "chunk #{type}" : "what stands there"
      end

      # The offset of the next magic or whole chunk, nil when there is none. The work is bounded: a file that consists
      # of false starts would take hours.
      def next_whole(from)
        while from < @size
          block = bytes_at(from, SCAN_BLOCK)
          at = 0
          while (at = block.index(MARK, at))
            return from + at if whole?(from + at)
            return if (@scan_left -= HEADER_BYTES + MAGIC_BYTES).negative?

            at += 1
          end
          return if (@scan_left -= block.bytesize).negative?

          # The bytes of MARK may lie in two blocks.
          from += [block.bytesize - MAGIC_BYTES, 1].max
          return if block.bytesize < SCAN_BLOCK
        end
      end

      def whole?(offset)
        if (magic = magic_at(offset))
          offset += magic.bytesize
        end
        chunk = chunk_at(offset)
        return false if chunk.finish > @size || (@scan_left -= chunk.stored).negative?

        stored_bytes(chunk)
        true
      rescue Malformed, BadRecording
        false
      end

      def bytes_at(offset, count)
        return "".b if count <= 0 || offset >= @size

        @io.pread([count, @size - offset].min, offset)
      rescue EOFError
        raise BadRecording, "#{@path}: became shorter while it was read: read it again"
      end
    end
    private_constant :ChunkStream
  end
end
