# frozen_string_literal: true

require "pitwall/cli/recording/source_history"

module Pitwall
  module CLI
    # Text of source lines, from files that are readable and not newer than the recording; from the project's history,
    # where that is given, of others.
    class SourceLines
      LARGEST = 4 * 1024 * 1024
      private_constant :LARGEST

      # @param headers [Array<Record::Header>] of the recording
      # @param repository [String, nil] whose history is asked for files that have changed since; nil: none
      #: (Array[Record::Header], ?repository: String?) -> void
      def initialize(headers, repository: nil)
        first = headers.select(&:started_at_ns).min_by(&:started_at_ns)
        @recorded_at = first && Time.at(0, first.started_at_ns, :nanosecond)
        @history = SourceHistory.new(repository, @recorded_at, commit: first&.commit)
        @files = {}
        @commits = {}
      end

      # @return [String, nil] the commit that a file's text is from; nil where it is the file as it stands
      #: (String) -> String?
      def commit(path) = @commits[path]

      # nil where the file is missing, has changed since, or has no such line. Paths come from the recording: nothing
      # but regular Ruby source is opened, so that a recording from elsewhere can't have other files shown.
      #: (String, Integer) -> String?
      def call(path, line)
        (@files[path] ||= lines(path))[line - 1] if line.positive?
      end

      private

      def lines(path)
        return [] unless path.start_with?("/") && path.match?(/\.(?:rb|ru|rake|erb|gemspec)\z/)

        stat = File.stat(path)
        return [] if !stat.file? || stat.size > LARGEST || @recorded_at.nil?

        stat.mtime > @recorded_at ? committed(path) : File.readlines(path, chomp: true, encoding: "UTF-8").map(&:scrub)
      rescue Errno::ENOENT
        committed(path)
      rescue SystemCallError, ArgumentError
        []
      end

      # As it was when the recording began.
      def committed(path)
        text = @history.text(path, largest: LARGEST)
        return [] unless text

        @commits[path] = @history.commit
        text.scrub.lines(chomp: true)
      end
    end
  end
end
