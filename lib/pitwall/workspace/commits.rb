# frozen_string_literal: true

require "tempfile"
require "pitwall/errors"
require "pitwall/workspace/commit_message"
require "pitwall/workspace/git"
require "pitwall/workspace/repository"

module Pitwall
  class Workspace
    # Commits with their messages and notes. Writes trailers into HEAD's message, and notes.
    class Commits
      NOTES = "refs/notes/pitwall"
      NOTE_TITLE = "Measured by Pitwall"
      private_constant :NOTE_TITLE

      # A commit. id, tree, title: String · parents: Array of ids · signed: whether it has a signature
      Commit = Struct.new(:id, :tree, :title, :parents, :signed, keyword_init: true)

      # @return [Repository]
      attr_reader :repository

      # @param dir a folder of the repository
      # @param prefix what the keys of our trailers begin with
      # Raises UsageError where there is no repository with a working tree.
      #: (String, prefix: String) -> void
      def initialize(dir, prefix:)
        @repository = Repository.at(dir)
        @git = Git.new(@repository.top)
        @message = CommitMessage.new(@git, prefix: prefix)
      end

      # The commit that a name stands for.
      # Raises UsageError when there is none.
      #: (String) -> Commit
      def find(name)
        id = @repository.id(name, "commit") or raise UsageError, unknown(name)
        header = @git.call("cat-file", "commit", id).split("\n\n", 2).first.lines(chomp: true)
        title = @git.call("log", "-1", "--no-show-signature", "--encoding=UTF-8", "--format=%s", id, "--").chomp
        Commit.new(id: id, tree: @repository.id(id, "tree"), title: title,
                   parents: header.grep(/\Aparent /).map { |line| line.split[1] },
                   signed: header.any? { |line| line.start_with?("gpgsig") })
      end

      # Our trailers in a commit's message; where it has none, those of its note.
      # @return lines "Key: value", maybe none
      #: (Commit) -> Array[String]
      def trailers(commit)
        found = @message.trailers(text_of(commit))
        found.any? ? found : @message.trailers(note_of(commit).to_s)
      end

      # Adds trailers to HEAD's message, in place of older ones of ours. What is staged stays staged.
      # @return the new commit
      # Raises UsageError when git refuses.
      #: (Commit, Array[[String, String]]) -> Commit
      def amend(commit, pairs)
        text = @message.with(text_of(commit), pairs)
        Tempfile.create("pitwall-message") do |file|
          file.write(text)
          file.close
          @git.call("commit", "--amend", "--only", "--allow-empty", "--quiet", "--cleanup=whitespace",
                    "--file", file.path)
        end
        find("HEAD")
      rescue Git::Failed => error
        raise UsageError, "git commit: #{error.message}"
      end

      # Writes trailers into a commit's note, in place of older ones of ours. The commit stays as it is.
      # Raises UsageError when git refuses.
      #: (Commit, Array[[String, String]]) -> void
      def annotate(commit, pairs)
        text = @message.with(note_of(commit) || "#{NOTE_TITLE}\n", pairs)
        @git.call("notes", "--ref=#{NOTES}", "add", "--force", "--file=-", commit.id, input: text)
      rescue Git::Failed => error
        raise UsageError, "git notes: #{error.message}"
      end

      # Adds trailers to the file of a message that is about to be committed.
      # Raises Git::Failed.
      #: (String, Array[[String, String]]) -> void
      def write(path, pairs)
        text = File.binread(path).force_encoding(Encoding::UTF_8)
        File.write(path, @message.with(text, pairs))
      end

      # Our trailers in the file of a message.
      # Raises Git::Failed.
      #: (String) -> Array[String]
      def trailers_in(path) = @message.trailers(File.binread(path).force_encoding(Encoding::UTF_8))

      # The tree of what is about to be committed; nil while files are unmerged.
      # @param index [String, nil] path of the index; nil: the repository's own
      #: (?String?) -> String?
      def staged_tree(index = nil)
        @git.call("write-tree", env: index ? { "GIT_INDEX_FILE" => index } : {}).strip
      rescue Git::Failed
        nil
      end

      # Writes the content of a blob to a file.
      # Raises Git::Failed.
      #: (String, String) -> void
      def extract(blob, path) = File.binwrite(path, @git.call("cat-file", "blob", blob))

      # Advice where an object is missing because the clone is shallow; nil in a whole one.
      #: () -> String?
      def shallow = ("; this clone is shallow: `git fetch --unshallow` gets the rest" if @repository.file("shallow"))

      private

      def text_of(commit)
        @git.call("log", "-1", "--no-show-signature", "--encoding=UTF-8", "--format=%B", commit.id, "--")
      end

      def note_of(commit) = @git.try("notes", "--ref=#{NOTES}", "show", commit.id)

      def unknown(name)
        return "#{@repository.top}: the repository has no commits" if @repository.id("HEAD", "commit").nil?

        "#{name}: no such commit in #{@repository.top}#{shallow || "; `git fetch` gets what the remote has"}"
      end
    end
  end
end
