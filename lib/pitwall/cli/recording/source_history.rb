# frozen_string_literal: true

require "pitwall/workspace/git"

module Pitwall
  module CLI
    # Text of a project's files as it was committed when a recording began.
    #
    # The recording names the commit. Where it does not, or the repository lacks it, the commit is what HEAD was at that
    # time, as the repository's log of HEAD says; where that does not reach back, the last commit before. What was not
    # committed then is not in it.
    class SourceHistory
      # @param root [String, nil] the project's repository; no other is asked
      # @param at [Time, nil] when the recording began
      # @param commit [String, nil] what the recording says was checked out then
      #: (String?, Time?, ?commit: String?) -> void
      def initialize(root, at, commit: nil)
        @roots = root ? [root, File.realpath(root)].uniq : []
        @git = Workspace::Git.new(root) if root
        @at = at
        @recorded = commit
      end

      # @return [String, nil] of a file of the repository; nil where the commit has none, or more than `largest` bytes
      #: (String, largest: Integer) -> String?
      def text(path, largest:)
        name = within(path)
        return unless name && commit

        blob = "#{commit}:#{name}"
        return unless ask("cat-file", "-s", blob)&.to_i&.between?(0, largest)

        ask("cat-file", "blob", blob).force_encoding(Encoding::UTF_8)
      end

      # @return [String, nil] its whole name
      #: () -> String?
      def commit
        return @commit if defined?(@commit)

        @commit = (recorded || then_head || last_before).to_s[/\A\h+/] if @git && @at
      end

      private

      # The path below the repository; nil for others, which git is never asked for.
      def within(path)
        return unless path == File.expand_path(path)

        root = @roots.find { |folder| path.start_with?("#{folder}/") }
        path.delete_prefix("#{root}/") if root
      end

      def recorded = @recorded && ask("rev-parse", "--verify", "--quiet", "#{@recorded}^{commit}")

      def last_before = ask("rev-list", "-1", "--before=#{moment}", "HEAD")

      # A log that begins later answers with its oldest entry.
      def then_head
        head = ask("rev-parse", "--verify", "--quiet", "HEAD@{#{moment}}")&.strip
        head if head && ask("show", "-s", "--format=%ct", head).to_i.between?(1, @at.to_i)
      end

      def moment = @at.utc.strftime("%Y-%m-%d %H:%M:%S +0000")

      # nil where git fails, or is absent.
      def ask(*words)
        @git.call(*words, env: { "GIT_NO_LAZY_FETCH" => "1" })
      rescue Workspace::Git::Failed, CannotMeasure
        nil
      end
    end
    private_constant :SourceHistory
  end
end
