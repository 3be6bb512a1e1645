# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/workspace/subprocess"

module Pitwall
  class Workspace
    # Calls git for scripts: without prompts, hooks, translated messages or background maintenance.
    # @api private
    class Git
      # A git command failed. The message is git's error line.
      class Failed < StandardError; end

      # Variables that git sets for hooks and aliases. The variables would redirect every call to the hook's repository.
      LOCAL = %w[GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
                 GIT_COMMON_DIR GIT_PREFIX GIT_NAMESPACE GIT_SHALLOW_FILE GIT_GRAFT_FILE GIT_INTERNAL_SUPER_PREFIX
                 GIT_CEILING_DIRECTORIES GIT_QUARANTINE_PATH].freeze
      # Environment variables of every git call; nil unsets a variable.
      ENVIRONMENT = LOCAL.to_h { |name| [name, nil] }
                         .merge("GIT_OPTIONAL_LOCKS" => "0", "GIT_TERMINAL_PROMPT" => "0", "LC_ALL" => "C").freeze
      SETTINGS = %w[core.hooksPath=/dev/null core.fsmonitor=false gc.auto=0 maintenance.auto=false
                    advice.detachedHead=false core.quotePath=false].flat_map { |setting| ["-c", setting] }.freeze
      private_constant :SETTINGS

      # @param dir [String] folder in which git runs
      # @param git_dir [String, nil] a repository without a working tree
      #: (String, ?git_dir: String?) -> void
      def initialize(dir, git_dir: nil)
        @dir = dir
        # --work-tree overrides the repository's setting: a submodule's repository names a folder that may not exist.
        @options = git_dir ? ["--git-dir", git_dir, "--work-tree", git_dir] : []
      end

      # Runs a git command.
      # @param input [String, nil] the command's standard input
      # @return [String] the command's standard output
      # Raises Failed when the command fails, CannotMeasure where git is not installed.
      #: (*String, ?env: Hash[String, String?], ?input: String?) -> String
      def call(*words, env: {}, input: nil)
        finished = capture(words, env, input)
        return finished.out if finished.success?

        lines = finished.err.lines.map(&:strip)
        line = lines.find { |each| each.match?(/\A(?:fatal|error):/) } || lines.last.to_s
        text = line.sub(/\A(?:fatal|error): /, "")
        raise Failed, text.empty? ? "git #{words.first} failed" : text
      end

      # Runs a git command.
      # @return [String, nil] the command's standard output; nil when the command failed
      # Raises CannotMeasure where git is not installed.
      #: (*String) -> String?
      def try(*words)
        finished = capture(words, {}, nil)
        finished.out if finished.success?
      end

      # The command line of a git command, to be run by {BuildLog}.
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
