# frozen_string_literal: true

require "json"
require "zlib"
require "pitwall/errors"
require "pitwall/record/import"
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
        CONTROL = /[\x00-\x08\x0E-\x1A\x1C-\x1F]/n.freeze
        PROTOBUF = " of protobuf, which takes up to 65 times as much memory"
        private_constant :BLOCK, :BEGINNING, :LONGEST_LINE, :NESTING, :GZIP, :CONTROL, :PROTOBUF

        # @raise [UsageError] no such file, or a directory
        # @raise [BadRecording] it can't be read
        #: (String, ?max_bytes: Integer?) -> Source
        def self.open(path, max_bytes: nil)
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

        # @param max_bytes [Integer, nil] nil: the usual limits
        #: (IO, String, ?max_bytes: Integer?) -> void
        def initialize(io, name, max_bytes: nil)
          @io = io
          @name = name
          @max_bytes = max_bytes || MAX_BYTES
          @max_protobuf_bytes = max_bytes || MAX_PROTOBUF_BYTES
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

        # Whether the beginning is text: it has no control characters but those of texts.
        #: () -> bool
        def text? = !@beginning.match?(CONTROL)

        # All bytes.
        # @raise [Malformed] there are more than allowed
        #: () -> String
        def bytes = @bytes ||= read(@max_bytes)

        # The file as a protobuf message; nil where it is none of that type.
        # @param type [Class] of the message
        # @raise [Malformed] it has more bytes than are allowed of protobuf
        #: (Class) -> untyped
        def message(type)
          @bytes ||= read(@max_protobuf_bytes, PROTOBUF)
          too_large(@max_protobuf_bytes, PROTOBUF) if @bytes.bytesize > @max_protobuf_bytes
          (@messages ||= {}).fetch(type) { @messages[type] = decoded(type) }
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
          return unless text? && @beginning.match?(/\A(?:\xEF\xBB\xBF)?\s*[{\[]/n)

          whole = bytes.dup.force_encoding(Encoding::UTF_8).delete_prefix("\uFEFF")
          whole = whole.scrub("?") unless whole.valid_encoding?
          @json = JSON.parse(whole, max_nesting: NESTING, create_additions: false)
        rescue JSON::NestingError
          raise Malformed, "is JSON nested deeper than #{NESTING} levels"
        rescue JSON::ParserError
          raise Malformed, "starts as JSON and is damaged"
        end

        private

        def read(limit, kind = "")
          all = +"".b
          each_block do |block|
            too_large(limit, kind) if all.bytesize + block.bytesize > limit
            all << block
          end
          all.freeze
        end

        def decoded(type)
          type.decode(@bytes)
        rescue Google::Protobuf::ParseError
          nil
        end

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

        def too_large(limit, kind)
          @advice = { max_bytes: limit }
          raise Malformed, "holds more than #{limit} bytes#{" when decompressed" if @inflate}#{kind}"
        end
      end
      private_constant :Source
    end
  end
end
