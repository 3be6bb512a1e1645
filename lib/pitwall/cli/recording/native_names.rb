# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/errors"
require "pitwall/record"

module Pitwall
  module CLI
    # Names of native frames for whoever reads a recording: found in folders that the user names, and demangled. Nothing
    # else of the machine is read: what a recording shows does not depend on where it is shown.
    module NativeNames
      # Keys of options that name a method.
      TYPED = %i[blackbox callers callees within focus hide].freeze
      private_constant :TYPED

      module_function

      #: (OptionParser, Hash[Symbol, untyped]) -> void
      def define_options(parser, options)
        parser.on("--symbols DIR", "find names of native functions here, by build id: unstripped objects or debug " \
                                   "files; repeatable") { |folder| (options[:symbols] ||= []) << folder }
        parser.on("--no-demangle", "show native functions by their linkage names") { options[:demangle] = false }
      end

      # @param shown [Boolean] whether native frames are shown among others, not folded
      # @return [Array(Array<Record::Segment>, Array<Record::Warning>)] copies with names
      #: (Array[Record::Segment], Hash[Symbol, untyped], shown: bool) -> [Array[Record::Segment], Array[untyped]]
      def call(segments, options, shown:)
        folders = options.fetch(:symbols, [])
        missing = folders.find { |folder| !File.directory?(folder) }
        raise UsageError, "--symbols #{missing}: no such folder" if missing

        unless Analyse::NativeFrames.any?(segments)
          return [segments, folders.map { |one| warning("--symbols #{one}: the recording has no native frames") }]
        end

        require "pitwall/symbols"
        named, warnings = resolved(segments, folders)
        if folders.any? && !shown && segments.all? { |segment| Analyse::NativeFrames.folds?(segment) }
          warnings << warning("--symbols: native frames are folded here; --native (report, export) or --only native " \
                              "shows them")
        end
        [options.fetch(:demangle, true) ? demangled(named) : named, warnings]
      end

      # Options with demangled names in place of linkage names: what is shown is what is looked for.
      #: (Hash[Symbol, untyped]) -> Hash[Symbol, untyped]
      def typed(options)
        names = options.values_at(*TYPED).flatten.grep(String).select { |name| name.match?(/\A__?[ZR]/) }
        return options if names.empty? || options[:demangle] == false

        require "pitwall/symbols"
        known = Symbols::Demangling.new.call(names)
        options.to_h { |key, value| [key, TYPED.include?(key) ? replaced(value, known) : value] }
      end

      def replaced(value, known)
        value.is_a?(Array) ? value.map { |one| known.fetch(one, one) } : known.fetch(value, value)
      end
      private_class_method :replaced

      def resolved(segments, folders)
        return [segments, []] if folders.empty?

        resolution = Symbols::Resolution.new(folders)
        named = resolution.call(segments)
        [named, resolution.notes.map { |note| warning("--symbols: #{note}") }]
      end
      private_class_method :resolved

      def demangled(segments)
        natives = segments.map { |segment| segment.frames.select { |_, frame| frame.kind == Record::Frame::NATIVE } }
        known = Symbols::Demangling.new.call(natives.flat_map { |frames| frames.each_value.map(&:name) })
        segments.zip(natives).map do |segment, frames|
          changed = frames.select { |_, frame| known.key?(frame.name) }
          changed.transform_values! { |frame| frame.dup.tap { |copy| copy.name = known.fetch(frame.name) } }
          changed.empty? ? segment : segment.with(frames: segment.frames.merge(changed))
        end
      end
      private_class_method :demangled

      def warning(message) = Record::Warning.new(code: :symbols, message: message)
      private_class_method :warning
    end
    private_constant :NativeNames
  end
end
