# frozen_string_literal: true

require "json"
require "zlib"
require "pitwall/errors"
require "pitwall/record/malformed"

module Pitwall
  module Record
    module Import
      # The bytes of a file that is imported, decompressed where it is compressed by gzip. Formats ask for its
      # beginning, its lines, its JSON or all of it. Memory is bounded.
      # @api private
      class Source
        BLOCK = 64 * 1024
        # Bytes of the beginning, by which formats recognise a file.
        BEGINNING = 64 * 1024
        # Bytes of the longest line.
        LONGEST_LINE = 1024 * 1024
        # Objects and lists within each other in JSON.
        NESTING = 100
        GZIP = "\x1F\x8B".b
        private_constant :BLOCK, :BEGINNING, :LONGEST_LINE, :NESTING, :GZIP

        # @raise [UsageError] no such file, or a directory
        # @raise [BadRecording] it can't be read
        #: (String, max_bytes: Integer) -> Source
        def self.open(path, max_bytes:)
          return new($stdin, "standard input", max_bytes: max_bytes) if path == "-"
          raise UsageError, "#{path}: is a directory: name a file in it" if File.directory?(path)

          new(File.open(path, "rb"), path, max_bytes: max_bytes)
        rescue Errno::ENOENT, Errno::ENOTDIR
          raise UsageError, "#{path}: no such file"
        rescue SystemCallError, ArgumentError => error
          reason = error.is_a?(SystemCallError) ? SystemCallError.new(error.errno).message : error.message
          raise BadRecording, "#{path.inspect}: cannot be read: #{reason}"
        end

        # The path as it was given.
        # @return [String]
        attr_reader :name
        # The first bytes, decompressed; fewer where the file is damaged there.
        # @return [String]
        attr_reader :beginning
        # Keys of advice that belong to the last error.
        # @return [Hash{Symbol => Object}]
        attr_reader :advice

        #: (IO, String, max_bytes: Integer) -> void
        def initialize(io, name, max_bytes:)
          @io = io
          @name = name
          @max_bytes = max_bytes
          @advice = {}
          io.binmode if io.respond_to?(:binmode)
          first = read_raw.to_s
          @inflate = new_inflate if first.start_with?(GZIP)
          @waiting = [first]
          @beginning = +"".b
          look
        end

        # The file's name without its folders, for recordings.
        #: () -> String
        def base_name = File.basename(@name).scrub

        # @raise [Malformed] its beginning can't be read
        #: () -> void
        def check = @fault && raise(@fault)

        # All bytes.
        # @raise [Malformed] there are more than allowed
        #: () -> String
        def bytes
          @bytes ||= begin
            all = +"".b
            each_block do |block|
              too_large if all.bytesize + block.bytesize > @max_bytes
              all << block
            end
            all.freeze
          end
        end

        # The lines, without their ends, once. Bytes that are no UTF-8 are replaced.
        # @raise [Malformed] a line is too long
        # @yield [String]
        #: () { (String) -> void } -> void
        def each_line
          rest = +"".b
          each_block do |block|
            rest << block
            *lines, rest = rest.split("\n", -1)
            lines.each { |line| yield text(line) }
            raise Malformed, "has a line of more than #{LONGEST_LINE} bytes" if rest.bytesize > LONGEST_LINE
          end
          yield text(rest) unless rest.empty?
        end

        # The file as JSON; nil where it is none. Its strings are valid UTF-8.
        # @raise [Malformed] it starts as JSON and is damaged, or too large
        #: () -> untyped
        def json
          return @json if @parsed

          @parsed = true
          return unless @beginning.match?(/\A(?:\xEF\xBB\xBF)?\s*[{\[]/n)

          whole = bytes.dup.force_encoding(Encoding::UTF_8).delete_prefix("\uFEFF")
          whole = whole.scrub("?") unless whole.valid_encoding?
          @json = JSON.parse(whole, max_nesting: NESTING, create_additions: false)
        rescue JSON::NestingError
          raise Malformed, "is JSON nested deeper than #{NESTING} levels"
        rescue JSON::ParserError
          raise Malformed, "starts as JSON and is damaged"
        end

        private

        def text(line)
          line = line.delete_suffix("\r").force_encoding(Encoding::UTF_8)
          line.valid_encoding? ? line : line.scrub("?")
        end

        # Keeps the blocks that were looked at, for {each_block}.
        def look
          while @beginning.bytesize < BEGINNING && (block = next_block)
            (@looked ||= []) << block
            @beginning << block.byteslice(0, BEGINNING - @beginning.bytesize)
          end
        rescue Malformed => e
          @fault = e # it is raised when the bytes are needed
        end

        def each_block
          (@looked || []).each { |block| yield block }
          check
          while (block = next_block)
            yield block
          end
        end

        def next_block
          until @waiting.empty? && @ended
            raw = @waiting.shift || read_raw
            return finish unless raw && !raw.empty?

            block = @inflate ? inflated(raw) : raw
            return block unless block.empty?
          end
        end

        def finish
          @ended = true
          raise Malformed, "is compressed by gzip and cut off" if @inflate && !@inflate.finished?

          nil
        end

        def read_raw
          @io.read(BLOCK)
        rescue SystemCallError, IOError => error
          raise Malformed, "can't be read: #{error.message[/\A[^@]*/].strip}"
        end

        def new_inflate = Zlib::Inflate.new(Zlib::MAX_WBITS + 16)

        # A file may consist of several compressed parts.
        def inflated(raw)
          @inflate = new_inflate if @inflate.finished?
          before = @inflate.total_in
          out = @inflate.inflate(raw)
          left = @inflate.finished? ? raw.byteslice(@inflate.total_in - before, raw.bytesize) : ""
          @waiting.unshift(left) if left.start_with?(GZIP)
          out
        rescue Zlib::Error
          raise Malformed, "is compressed by gzip and damaged"
        end

        def too_large
          @advice = { max_bytes: @max_bytes }
          raise Malformed, "holds more than #{@max_bytes} bytes#{" when decompressed" if @inflate}"
        end
      end
      private_constant :Source
    end
  end
end
