# frozen_string_literal: true

require "pitwall/analyse"
require "pitwall/cli/recording/source_lines"
require "pitwall/cli/recording/syscall_sources"
require "pitwall/show"
require "pitwall/views"

module Pitwall
  module CLI
    # The application that a command is called in: whose code is the user's own, and what stands out in a recording.
    module Project
      module_function

      # The working tree's root, else the working directory.
      #: () -> String
      def root = repository || Dir.pwd

      # The folder that relative paths of traced recordings start from: the working directory, if the files are there.
      #: (Array[Record::Segment]) -> String?
      def folder_of(segments)
        frames = segments.select(&:traced?).flat_map { |segment| segment.frames.values }
        paths = frames.select { |frame| frame.kind.zero? }.map(&:path)
        relative = paths.uniq.reject { |path| path.empty? || path.start_with?("/", "(", "<") }
        Dir.pwd if relative.all? { |path| File.exist?(path) }
      end

      #: () -> Analyse::Origin
      def origin = Analyse::Origin.new(base: root)

      # @return [String, nil] the root of the git repository around the working directory
      #: () -> String?
      def repository
        folder = Dir.pwd
        until File.exist?(File.join(folder, ".git"))
          above = File.dirname(folder)
          return if above == folder

          folder = above
        end
        folder
      end

      # What stands out, as the shows take it.
      # @param file [String] the recordings, as one would type them again
      # @param command [Array<String>, nil] of the program
      # @param selection [Analyse::Selection, nil] nil: without idle threads
      # @param filters [String] as one types them: " --focus Foo"
      #: (Array[Record::Segment], file: String, **untyped) -> Array[Hash[String, untyped]]
      def findings(segments, file:, selection: nil, command: nil, filters: "")
        selection ||= Analyse::Selection.new(without: Analyse::IdleThreads.find(segments))
        found = Analyse::Findings.of(segments, selection: selection, origin: origin)
        return [] if found.empty?

        words = Show::FindingWords.new(file: file, command: command, repository: !repository.nil?, base: Dir.pwd,
                                       hints: Views::Hints, filters: filters)
        found.map { |finding| words.to_h(finding) }
      end

      # What views ask of it.
      # @param files [Array<String>] the recordings
      # @param command [Array<String>, nil] of the program
      # @param patterns [Array<String>, nil] of system calls
      # @param filters [String] as one types them: " --focus Foo"
      #: (Array[String], ?command: Array[String]?, ?patterns: Array[String]?, ?filters: String) -> Views::Application
      def application(files, command: nil, patterns: nil, filters: "")
        file = typed(files)
        Views::Application.new(
          base: Dir.pwd, origin: origin, source: ->(headers) { SourceLines.new(headers, repository: repository) },
          findings: lambda do |segments, selection|
            findings(segments, file: file, command: command, selection: selection, filters: filters)
          end,
          patterns: -> { SyscallSources.patterns(patterns) }
        )
      end

      # Names of files as one would type them again.
      #: (Array[String]) -> String
      def typed(files)
        require "shellwords"
        Show::Text.line(files.map { |file| Shellwords.escape(file.delete_prefix("#{Dir.pwd}/")) }.join(" "))
      end
    end
    private_constant :Project
  end
end
