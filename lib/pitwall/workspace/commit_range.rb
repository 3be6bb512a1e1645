# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/workspace/git"
require "pitwall/workspace/reach"

module Pitwall
  class Workspace
    # The commits of a range, such as "main..HEAD", in the order of their history.
    #
    # The range follows first parents. So a merge is one change: all that it merged, against the commit before it.
    class CommitRange
      # A commit. id, tree, title: String · parents: Array of ids · base: id of the commit before it
      Commit = Struct.new(:id, :tree, :title, :parents, :base, keyword_init: true) do
        # The first digits of the id.
        #: () -> String
        def short = id[0, SHORT]

        #: () -> bool
        def merge? = parents.size > 1
      end
      SHORT = 8
      FIELDS = "%H%x00%P%x00%T%x00%s"
      # A patch that `git apply` takes, whatever the user's settings of `git diff` are.
      PATCH = %w[--binary --full-index --no-color --no-ext-diff --no-textconv --src-prefix=a/ --dst-prefix=b/
                 --unified=3 --inter-hunk-context=0 --find-renames --submodule=short --ignore-submodules=none].freeze
      private_constant :SHORT, :FIELDS, :PATCH

      # @return [Array<Commit>] the oldest first; at least one
      attr_reader :commits

      # @param text "GOOD..BAD"; an end that is left out is HEAD
      # Raises UsageError for a range that can't be read or that is empty, CannotMeasure where a shallow clone lacks
      # commits.
      #: (Repository, String) -> void
      def initialize(repository, text)
        @repository = repository
        @text = text
        @git = Git.new(repository.top)
        raise UsageError, "#{repository.top}: the repository has no commits" unless repository.id("HEAD", "commit")

        @from, @to = ends
        @commits = listed
        check
      rescue Git::Failed => error
        raise UsageError, "#{text}: #{error.message}"
      end

      # The commit before the oldest one: what all of them together are compared with.
      #: () -> Commit
      def base
        @base ||= read(@git.call("log", "-1", "--no-show-signature", "--encoding=UTF-8", "--format=#{FIELDS}",
                                 commits.first.base, "--")).first
      end

      # The files that a commit changes.
      # Raises CannotMeasure.
      #: (Commit) -> Array[String]
      def paths(commit)
        @repository.changed_paths(commit.base, commit.id)
      rescue Git::Failed => error
        raise CannotMeasure, "#{commit.short}: #{error.message}"
      end

      # Writes the change of a commit against the commit before it as a patch. Git writes the file, since a patch has
      # the bytes of its files, in any encoding.
      # Raises CannotMeasure.
      #: (Commit, String) -> void
      def write_patch(commit, path)
        @git.call("diff", *PATCH, "--output=#{path}", commit.base, commit.id, "--")
      rescue Git::Failed => error
        raise CannotMeasure, "its patch can't be written: #{error.message}"
      end

      private

      def ends
        parts = @text.split("..", -1)
        if parts.size != 2 || parts.last.start_with?(".") || parts.all?(&:empty?)
          raise UsageError, "#{@text}: write a range of commits with two dots, such as main..HEAD"
        end

        parts.map { |name| name.empty? ? "HEAD" : name }.map do |name|
          @repository.id(name, "commit") or
            raise UsageError, "#{name}: no such commit in #{@repository.top}" \
                              "#{shallow? ? unshallow : "; `git fetch` gets what the remote has"}"
        end
      end

      def listed
        read(@git.call("log", "--first-parent", "--reverse", "--no-show-signature", "--encoding=UTF-8",
                       "--format=#{FIELDS}", "#{@from}..#{@to}", "--"))
      end

      def read(text)
        text.lines(chomp: true).map do |line|
          id, parents, tree, title = line.split("\0", 4)
          parents = parents.split
          Commit.new(id: id, parents: parents, tree: tree, title: title, base: parents.first)
        end
      end

      def check
        if @commits.empty?
          backwards = @git.try("merge-base", "--is-ancestor", @to, @from) && @from != @to
          ends = @text.split("..", -1).reverse.join("..")
          raise UsageError, "#{@text}: no commits in it#{" (did you mean #{ends}?)" if backwards}"
        end

        return if @commits.first.base && @git.try("merge-base", @from, @to)
        raise CannotMeasure, "#{@text}: commits of it are missing here#{unshallow}" if shallow?

        raise UsageError, "#{@text}: the two have no history in common"
      end

      def shallow? = !@repository.file("shallow").nil?

      def unshallow = "; this clone is shallow: `git fetch --unshallow` gets the rest"
    end
  end
end
