# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/workspace/git"

module Pitwall
  class Workspace
    # The hook `prepare-commit-msg` of a repository, which calls Pitwall. A hook that is there already is kept beside it
    # and runs first.
    class CommitHook
      NAME = "prepare-commit-msg"
      # Added to the name of the hook that was there before.
      KEPT = ".before-pitwall"
      SCRIPT = <<~SHELL
        #!/bin/sh
        # Added by Pitwall: puts a measured change's proof into the commit message.
        # The hook that was here before is %<name>s%<kept>s. It runs first.
        if [ -x "$0%<kept>s" ]; then "$0%<kept>s" "$@" || exit; fi
        command -v pitwall >/dev/null 2>&1 || exit 0
        exec pitwall %<words>s "$@"
      SHELL
      private_constant :SCRIPT

      # @return [String] path of the hook
      attr_reader :path

      # @param words what `pitwall` is called with
      # Raises UsageError where another tool or other repositories own the hooks.
      #: (Repository, words: String) -> void
      def initialize(repository, words:)
        @script = format(SCRIPT, name: NAME, kept: KEPT, words: words)
        elsewhere = repository.hooks_path
        if elsewhere
          raise UsageError, "core.hooksPath is #{elsewhere}, so another tool or other repositories own the hooks: " \
                            "call pitwall #{words} \"$@\" in the #{NAME} there"
        end

        @path = File.join(repository.common_dir, "hooks", NAME)
        @kept = "#{@path}#{KEPT}"
      end

      # Whether the hook is Pitwall's.
      #: () -> bool
      def installed? = File.file?(@path) && !File.symlink?(@path) && File.binread(@path) == @script.b

      # Installs the hook.
      # @return [Symbol] :installed, :chained (another hook was there) or :unchanged
      # Raises UsageError; nothing is changed then.
      #: () -> Symbol
      def install
        return :unchanged if installed?
        raise UsageError, "#{@kept}: is there already: move it away, or back to #{NAME}" if exist?(@kept)

        Dir.mkdir(File.dirname(@path)) unless File.directory?(File.dirname(@path))
        put(chained: exist?(@path))
      rescue SystemCallError => error
        raise UsageError, "#{@path}: #{SystemCallError.new(error.errno).message}"
      end

      # Removes the hook, and puts the one back that was there before.
      # @return [Symbol] :removed, :restored or :unchanged (there is none of Pitwall's)
      # Raises UsageError.
      #: () -> Symbol
      def remove
        return refuse_changed unless installed?
        return File.unlink(@path) && :removed unless exist?(@kept)

        File.rename(@kept, @path)
        :restored
      rescue SystemCallError => error
        raise UsageError, "#{@path}: #{SystemCallError.new(error.errno).message}"
      end

      private

      def exist?(path) = File.exist?(path) || File.symlink?(path)

      # The new hook is complete before it gets its name, so that a commit meanwhile runs a whole one.
      def put(chained:)
        part = "#{@path}.#{Process.pid}"
        File.write(part, @script)
        File.chmod(0o755, part)
        File.rename(@path, @kept) if chained
        File.rename(part, @path)
        chained ? :chained : :installed
      rescue SystemCallError
        File.rename(@kept, @path) if chained && exist?(@kept) && !exist?(@path)
        raise
      ensure
        File.unlink(part) if part && File.exist?(part)
      end

      def refuse_changed
        return :unchanged unless exist?(@kept)

        raise UsageError, "#{@path}: was changed since Pitwall installed it, so it stays: " \
                          "the hook before it is #{File.basename(@kept)}"
      end
    end
  end
end
