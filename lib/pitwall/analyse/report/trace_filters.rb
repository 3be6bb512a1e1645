# frozen_string_literal: true

require "pitwall/analyse/clean_path"
require "pitwall/analyse/tree/method_match"
require "pitwall/record/warning"

module Pitwall
  module Analyse
    # Warnings for filters of traced recordings that match nothing. The usual cause is a mistyped name.
    module TraceFilters
      # Options of the tracer, and what a filter of each matches.
      KINDS = { "only_under" => "method", "class" => "method of", "path" => "Ruby code in" }.freeze
      private_constant :KINDS

      # One warning for each filter that matches nothing in any process.
      # @param base [String, nil] folder of relative paths. The path of the program's own file is as typed, so it may be
      #   relative. nil: unknown; a filter then matches if it would match for any folder
      #: (Array[Record::Segment], ?base: String?) -> Array[Record::Warning]
      def self.warnings(segments, base: nil)
        traced = segments.select(&:traced?)
        settings = traced.map { |segment| settings(segment) }
        limited = settings.any? do |given|
          given.key?("depth") || KINDS.keys.count { |kind| words(given, kind).any? } > 1
        end
        frames = traced.flat_map { |segment| segment.frames.values }
        KINDS.keys.flat_map do |kind|
          words = settings.flat_map { |given| words(given, kind) }.uniq
          words.reject! { |word| frames.any? { |frame| fits?(kind, word, frame, base) } }
          words.map { |word| Record::Warning.new(code: :unmatched, message: message(kind, word, frames, limited)) }
        end
      end

      # Whether any process had a filter.
      #: (Array[Record::Segment]) -> bool
      def self.any?(segments)
        segments.map { |segment| settings(segment) }.any? do |given|
          given.key?("depth") || KINDS.keys.any? { |kind| words(given, kind).any? }
        end
      end

      # The same rules as in trace_filters.c.
      def self.fits?(kind, word, frame, base)
        return frame.name == word if kind == "only_under"
        return frame.kind.zero? && path_fits?(word, frame.path, base) if kind == "path"

        name = frame.name.sub(/\Ablock .*\bin /, "")
        ["#", ".", "::"].any? { |separator| name.start_with?("#{word}#{separator}") }
      end
      private_class_method :fits?

      # The tracer compares absolute paths. "(eval)" and "<internal:gc>" have none.
      def self.path_fits?(word, path, base)
        return fnmatch?(word, path) if path.empty? || path.start_with?("/", "(", "<")
        return fnmatch?(word, CleanPath.of("/#{base}/#{path}")) if base

        word.start_with?("/", "*", "?", "[") && (0...word.size).any? { |at| fnmatch?(word[at..], "/#{path}") }
      end
      private_class_method :path_fits?

      def self.fnmatch?(word, path) = File.fnmatch(word, path, File::FNM_DOTMATCH)
      private_class_method :fnmatch?

      # With several filters, or with a depth, another filter may have excluded the method.
      def self.message(kind, word, frames, limited)
        near = kind == "path" ? "" : MethodMatch.hint(frames, word)
        why = limited ? "was traced, as all filters together have it" : "ran"
        "no #{KINDS.fetch(kind)} #{word} #{why} (--#{kind.tr("_", "-")})#{near}"
      end
      private_class_method :message

      def self.settings(segment)
        trace = segment.header.settings["collectors"]
        trace = trace["trace"] if trace.is_a?(Hash)
        trace.is_a?(Hash) ? trace : {}
      end
      private_class_method :settings

      def self.words(settings, kind) = settings[kind].is_a?(String) ? settings[kind].split("\n") : []
      private_class_method :words
    end
  end
end
