# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/record/malformed"

module Pitwall
  module Record
    # Makes recordings of other tools' profiles (doc/import.md). The content of a file tells its format. Files are not
    # trusted: figures, sizes and references are checked, nothing in a file is executed.
    #
    #   profile = Import.open("stackprof.json")
    #   profile.format              # => "stackprof"
    #   profile.write_to(io)        # a recording
    #
    # Reading order: import/source.rb (bytes, lines, JSON of a file), import/format.rb (what all formats share), then
    # one file for each format.
    module Import
      # Name → class. Each is asked in this order whether the file is in its format.
      FORMATS = {
        "stackprof" => :Stackprof,
        "pprof" => :Pprof,
        "otlp" => :Otlp,
        "speedscope" => :Speedscope,
        "firefox" => :Firefox,
        "memory-profiler" => :MemoryProfiler,
        "callgrind" => :Callgrind,
        "perf-script" => :PerfScript,
        "collapsed" => :Collapsed
      }.freeze
      FORMATS.each { |name, constant| autoload constant, "pitwall/record/import/#{name.tr("-", "_")}" }
      # Bytes of a file, after decompression, that are read into memory. Formats of lines are read line by line instead.
      MAX_BYTES = 256 * 1024 * 1024
      # The same for formats in protobuf. Two bytes of such a file may become an object of 130 bytes.
      MAX_PROTOBUF_BYTES = 32 * 1024 * 1024
      # Files that are often given by mistake, by their first bytes.
      MISTAKES = {
        "PITWALL " => "is a recording already: it needs no import",
        "\x28\xB5\x2F\xFD" => "is compressed by zstd: decompress it first",
        "BZh" => "is compressed by bzip2: decompress it first",
        "\xFD7zXZ" => "is compressed by xz: decompress it first",
        "\x7FELF" => "is a program, not a profile",
        "PK\x03\x04" => "is a zip archive: unpack it first",
        "PERFILE2" => "is perf's own file, which only perf reads: run `perf script -i FILE >FILE.txt` where perf is " \
                      "installed, and import FILE.txt"
      }.transform_keys(&:b).freeze
      # The same for texts, by what their beginnings have.
      PRINTS = {
        /^Measure Mode: .*\n(?:Thread|Fiber) ID: / => "is what ruby-prof prints for people: print with its " \
                                                    "CallTreePrinter, and import that file",
        /\ATotal allocated: .*\nTotal retained: / => "is what memory_profiler prints for people: write its lists as " \
                                                     "JSON, and import that file",
        /^  Mode: (?:wall|cpu|object|custom)\(\d+\)$/ => "is what stackprof prints for people: import its dump, or " \
                                                        "what `stackprof --json` prints",
        /\A\s*<(?:!DOCTYPE|html)/i => "is a page, not a profile"
      }.freeze
      private_constant :FORMATS, :MISTAKES, :PRINTS

      class << self
        # Names of all formats.
        #: () -> Array[String]
        def names = FORMATS.keys

        # @param path [String] a file; `-` is standard input
        # @param from [String, nil] the format's name; nil: the content tells it
        # @param type [String, nil] which of the file's figures becomes the weight, where the format has a choice
        # @param max_bytes [Integer, nil] the most that is read into memory; nil: MAX_BYTES, MAX_PROTOBUF_BYTES
        # @param io [IO, nil] what to read instead of the file
        # @raise [UsageError] there is no such file
        # @raise [BadRecording] the file is in none of the formats, or damaged
        #: (String, ?from: String?, ?type: String?, ?max_bytes: Integer?, ?io: IO?) -> Profile
        def open(path, from: nil, type: nil, max_bytes: nil, io: nil)
          require "pitwall/record/import/source"
          require "pitwall/record/import/format"
          source = io ? Source.new(io, path, max_bytes: max_bytes) : Source.open(path, max_bytes: max_bytes)
          guard(source) do
            format = from || recognised(source) or raise Malformed, unknown(source)
            Profile.new(format, source, const_get(FORMATS.fetch(format)).new(source, type: type))
          end
        end

        # The format's name of a file that may be no recording; nil where it has none.
        # @param max_bytes [Integer] a larger file has none
        #: (String, ?max_bytes: Integer) -> String?
        def format_of(path, max_bytes: MAX_BYTES / 8)
          require "pitwall/record/import/source"
          require "pitwall/record/import/format"
          source = Source.open(path, max_bytes: max_bytes)
          guard(source) { recognised(source) }
        rescue Pitwall::Error
          nil
        end

        # The samples of perf's text, in bounded memory.
        # @yield [PerfScript::Sample]
        # @return [PerfScript::Samples] what could not be read
        # @api private
        #: (untyped, String) { (untyped) -> void } -> untyped
        def perf_samples(io, name, &block)
          require "pitwall/record/import/source"
          require "pitwall/record/import/format"
          source = Source.new(io, name, max_bytes: MAX_BYTES)
          guard(source) { PerfScript::Samples.new(source).tap { |samples| samples.each(&block) } }
        end

        # Names the file in errors.
        # @api private
        def guard(source)
          yield
        rescue Malformed => e
          raise BadRecording.new("#{source.name}: #{e.message}", advice: source.advice)
        end

        private

        # The format of the first class that takes the file.
        def recognised(source) = names.find { |name| const_get(FORMATS.fetch(name)).fits?(source) }

        # @raise [Malformed] the file can't be read at all
        def unknown(source)
          source.check
          mistake = MISTAKES.find { |magic, _| source.beginning.start_with?(magic) }
          mistake ||= PRINTS.find { |beginning, _| source.beginning.match?(beginning) }
          return mistake[1] if mistake
          return "is empty" if source.beginning.empty?

          "is in none of the formats that can be imported: #{names.join(", ")}"
        end
      end

      # A file whose format is known.
      class Profile
        # @return [String] the format's name, e.g. "stackprof"
        attr_reader :format

        # @api private
        def initialize(format, source, reader)
          @format = format
          @source = source
          @reader = reader
        end

        # The format in sentences, e.g. "collapsed stacks".
        #: () -> String
        def title = @reader.class.title

        # Writes the recording.
        # @param io [IO] an empty file
        # @raise [BadRecording] the file is damaged, or a figure in it fits no recording
        #: (IO) -> void
        def write_to(io)
          require "pitwall/record/writer"
          Import.guard(@source) do
            writer = Writer.new(io)
            @reader.write(writer)
            writer.close
            @counts = writer.counts
          end
        end

        # What was written: rows, calls, sites, threads.
        # @return [Hash{Symbol => Integer}]
        attr_reader :counts

        # What could not be read, in sentences without the file's name.
        # @return [Array<String>]
        def warnings = @reader.warnings
      end
    end
  end
end
