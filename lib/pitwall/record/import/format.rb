# frozen_string_literal: true

require "pitwall/record/frame"
require "pitwall/record/import/values"
require "pitwall/record/malformed"

module Pitwall
  module Record
    module Import
      # The superclass of all formats. A subclass has a title, recognises files ({fits?}), and writes a recording
      # ({write}) with a Record::Writer.
      # @api private
      class Format
        include Values

        # Number of the thread of formats without threads.
        THREAD = 1
        # Thread states of doc/record-format.md.
        RUNNING = 0
        WAITS = 2
        UNKNOWN = 3
        # Name of stacks without frames: a thread was there, and no stack was taken.
        NO_STACK = "(no stack)"

        # Names that tools give to the collector of garbage.
        COLLECTOR = /\A\(?(?:marking|sweeping|garbage collection|GC)\)?(?: |\z)/.freeze
        # Paths of compiled code.
        OBJECT = /\.so(?:\.[\d.]+)?\z|\.(?:dylib|bundle|dll)\z|\A\[kernel/.freeze
        private_constant :COLLECTOR, :OBJECT

        class << self
          # The tool, or the format, in sentences.
          #: () -> String
          def title = raise(NotImplementedError, "#{self}.title")

          # Whether the file is in this format.
          #: (Source) -> bool
          def fits?(_source) = raise(NotImplementedError, "#{self}.fits?")

          # The kind of a frame, by its name and path.
          #: (String, String) -> Integer
          def kind(name, path)
            return Frame::GC if name.match?(COLLECTOR)
            return Frame::NATIVE if path.match?(OBJECT)

            path.empty? || path == "<cfunc>" ? Frame::C : Frame::RUBY
          end
        end

        # @return [Array<String>] what could not be read, in sentences
        attr_reader :warnings

        # @param type [String, nil] the figure that was asked for
        #: (Source, ?type: String?) -> void
        def initialize(source, type: nil)
          @source = source
          @type = type
          @warnings = []
        end

        # Writes all segments.
        # @raise [Malformed]
        #: (Writer) -> void
        def write(_writer) = raise(NotImplementedError, "#{self.class}#write")

        private

        # Begins a segment. What the file doesn't tell is left out of the HEAD.
        # @param fields program:, pid:, interval_ns:, started_at_ns:, ruby: and others of HEAD
        # @param sampled [Boolean] false where there are only calls or objects
        # @param paths [String, nil] "estimated" where the file has no call paths
        #: (Writer, ?sampled: bool, ?notes: Array[String], ?paths: String?, **untyped) -> SegmentWriter
        def segment(writer, sampled: true, notes: [], paths: nil, **fields)
          from = { "format" => self.class.title, "file" => @source.base_name, "paths" => paths }.compact
          head = { "collector" => "import", "imported" => from,
                   "mode" => (sampled ? nil : "none"), "notes" => notes }
          writer.segment(head.merge(fields.transform_keys(&:to_s)).compact)
        end

        #: (String, String) -> Integer
        def kind(name, path) = Format.kind(name, path)

        # @raise [Malformed]
        def refuse(text) = raise(Malformed, text)

        # The figure named `type` of several, or the first.
        # @param names [Array<String>]
        # @raise [Malformed] there is none of that name
        def chosen_type(names)
          return names.first unless @type
          return @type if names.include?(@type)

          refuse("has no figure #{@type}: it has #{names.join(", ")}")
        end
      end
      private_constant :Format
    end
  end
end
