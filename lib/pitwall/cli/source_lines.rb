# frozen_string_literal: true

module Pitwall
  module CLI
    # Text of source lines, from files that are readable and not newer than the recording.
    class SourceLines
      LARGEST = 4 * 1024 * 1024
      private_constant :LARGEST

      # @param recorded_at_ns [Integer, nil] Unix time
      #: (Integer?) -> void
      def initialize(recorded_at_ns)
        @recorded_at = recorded_at_ns && Time.at(0, recorded_at_ns, :nanosecond)
        @files = {}
      end

      # nil where the file is missing, has changed since, or has no such line. Paths come from the recording: nothing but
      # regular Ruby source is opened, so that a recording from elsewhere can't have other files shown.
      #: (String, Integer) -> String?
      def call(path, line)
        (@files[path] ||= lines(path))[line - 1] if line.positive?
      end

      private

      def lines(path)
        return [] unless path.start_with?("/") && path.match?(/\.(?:rb|ru|rake|erb|gemspec)\z/)

        stat = File.stat(path)
        return [] if !stat.file? || stat.size > LARGEST || @recorded_at.nil? || stat.mtime > @recorded_at

        File.readlines(path, chomp: true, encoding: "UTF-8").map(&:scrub)
      rescue SystemCallError, ArgumentError
        []
      end
    end
  end
end
