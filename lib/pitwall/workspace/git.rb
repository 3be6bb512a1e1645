# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/workspace/subprocess"

module Pitwall
  class Workspace
    # Calls git so that it answers scripts, asks nobody, runs no hooks and writes nothing that it wasn't asked to.
    # @api private
    class Git
      # What git said, one line.
      class Failed < StandardError; end

      # Set while git runs a hook or a command of the user's: they would turn every call to that repository.
      LOCAL = %w[GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_COMMON_DIR GIT_PREFIX GIT_NAMESPACE
                 GIT_SHALLOW_FILE GIT_GRAFT_FILE GIT_INTERNAL_SUPER_PREFIX GIT_CEILING_DIRECTORIES GIT_QUARANTINE_PATH].freeze
      ENVIRONMENT = LOCAL.to_h { |name| [name, nil] }.merge("GIT_OPTIONAL_LOCKS" => "0", "GIT_TERMINAL_PROMPT" => "0", "LC_ALL" => "C").freeze
      SETTINGS = %w[core.hooksPath=/dev/null core.fsmonitor=false gc.auto=0 maintenance.auto=false advice.detachedHead=false core.quotePath=false]
                 .flat_map { |setting| ["-c", setting] }.freeze
      private_constant :SETTINGS

      # @param git_dir [String, nil] a repository without a working tree
      #: (String, ?git_dir: String?) -> void
      def initialize(dir, git_dir: nil)
        @dir = dir
        # A module's repository names a working tree that needn't be there.
        @options = git_dir ? ["--git-dir", git_dir, "--work-tree", git_dir] : []
      end

      # @return [String] what it printed
      # Raises Failed, and CannotMeasure where there is no git.
      #: (*String, ?env: Hash[String, String?], ?input: String?) -> String
      def call(*words, env: {}, input: nil)
        finished = capture(words, env, input)
        return finished.out if finished.success?

        line = finished.err.lines.map(&:strip).find { |each| each.match?(/\A(?:fatal|error):/) } || finished.err.lines.last.to_s.strip
        raise Failed, line.sub(/\A(?:fatal|error): /, "").then { |text| text.empty? ? "git #{words.first} failed" : text }
      end

      # @return [String, nil] what it printed, nil where it failed
      #: (*String) -> String?
      def try(*words)
        finished = capture(words, {}, nil)
        finished.out if finished.success?
      end

      # @return [Array<String>] as a command
      #: (*String) -> Array[String]
      def command(*words) = ["git", *SETTINGS, *@options, *words]

      private

      def capture(words, env, input)
        Subprocess.capture(command(*words), env: ENVIRONMENT.merge(env), dir: @dir, input: input)
      rescue Errno::ENOENT
        raise CannotMeasure, "git is not installed, and revisions come from it" if File.directory?(@dir)

        raise
      end
    end
  end
end
