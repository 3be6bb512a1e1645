# frozen_string_literal: true

require "digest"
require "pitwall/errors"
require "pitwall/workspace/content"
require "pitwall/workspace/git"

module Pitwall
  class Workspace
    # Reads the user's repository: the content of a revision and of the working tree. Never writes to the repository;
    # {Commits} and {CommitHook} do.
    # @api private
    class Repository
      # Settings that change the content of checked-out files.
      CONTENT_SETTINGS = '^(core\.(autocrlf|eol|symlinks|filemode)|filter\..*)$'
      # Options that switch git LFS off: LFS would write files' content into the user's .git.
      WITHOUT_LFS = %w[-c filter.lfs.clean= -c filter.lfs.process= -c filter.lfs.required=false].freeze
      private_constant :CONTENT_SETTINGS, :WITHOUT_LFS

      class << self
        # The repository that contains a folder.
        # Raises UsageError when there is none, or when it has no working tree.
        #: (String) -> Repository
        def at(dir)
          questions = %w[--show-toplevel --absolute-git-dir --git-common-dir --show-prefix]
          lines = Git.new(dir).call("rev-parse", *questions).split("\n", -1)
          new(top: lines[0], git_dir: lines[1], common_dir: File.expand_path(lines[2], dir),
              prefix: lines[3].to_s.chomp("/"))
        rescue Git::Failed => error
          raise UsageError, "#{dir}: #{explain(error.message)}"
        end

        # The repository that contains a folder; nil when there is none.
        #: (String) -> Repository?
        def find(dir)
          at(dir)
        rescue Pitwall::Error
          nil
        end

        private

        def explain(text)
          return "not a git repository; --rev, --dirty and patches need one" if text.include?("not a git repository")
          return "the repository has no working tree; run in a clone that has one" if text.include?("work tree")

          text
        end
      end

      # @return [String, nil] root of the working tree; nil for a bare repository
      attr_reader :top
      # @return [String] folder of objects and settings; linked working trees share it
      attr_reader :common_dir
      # @return [String] path from `top` to the folder given to {at}; "" for `top` itself
      attr_reader :prefix

      #: (git_dir: String, common_dir: String, ?top: String?, ?prefix: String) -> void
      def initialize(git_dir:, common_dir:, top: nil, prefix: "")
        @top = top
        @git_dir = git_dir
        @common_dir = common_dir
        @prefix = prefix
        @git = top ? Git.new(top) : Git.new(git_dir, git_dir: git_dir)
      end

      # Name of the branch that is checked out; nil where HEAD is detached.
      #: () -> String?
      def branch = @git.try("symbolic-ref", "--quiet", "--short", "HEAD")&.strip

      # The content of a revision, given by any of git's names: a branch, a tag, HEAD~1, main@{yesterday}, a commit.
      # The id of a tree is taken too: a tree stays the same where commits are rewritten.
      # Raises UsageError when there is no such revision.
      #: (String) -> Content
      def revision(name)
        commit = id(name, "commit")
        return content_of(commit) if commit

        tree = id(name, "tree") or raise UsageError, unknown(name)
        content_of_tree(tree)
      rescue Git::Failed => error
        raise UsageError, "--rev #{name}: #{error.message}#{shallow_hint}"
      end

      # The content of the working tree: HEAD, the changes since, and untracked files that aren't ignored.
      # @param scratch [Proc] returns a new folder; git objects of uncommitted content are written there
      # Raises UsageError.
      #: (scratch: ^() -> String) -> Content
      def dirty(scratch:)
        folder = scratch.call
        objects = File.join(folder, "objects")
        # GIT_OBJECT_DIRECTORY hides the repository's objects: git would update the times of objects that exist.
        variables = { "GIT_INDEX_FILE" => copy_of_index(folder), "GIT_OBJECT_DIRECTORY" => objects }
        Dir.mkdir(objects)
        @git.call(*WITHOUT_LFS, "add", "--update", env: variables)
        @git.call(*WITHOUT_LFS, "update-index", "--add", "-z", "--stdin",
                  env: variables, input: untracked.map { |path| "#{path}\0" }.join)
        tree = @git.call("write-tree", "--missing-ok", env: variables).strip
        head = @git.try("rev-parse", "--verify", "--quiet", "HEAD^{commit}")&.strip
        changed = head.nil? || @git.call("rev-parse", "#{head}^{tree}").strip != tree
        submodules = links(tree, variables).to_h do |path, commit|
          [path, dirty_submodule(path, commit, scratch)]
        end.compact
        Content.new(repository: self, commit: head, tree: tree, title: nil, extra_objects: objects,
                    submodules: submodules,
                    changed: changed || submodules.each_value.any? { |each| each.is_a?(Content) && each.changed })
      rescue Git::Failed => error
        raise UsageError, "--dirty: #{error.message}"
      end

      # The id of the object that a name stands for; nil without such an object.
      # @param kind "commit", "tree" or "blob"
      #: (String, String) -> String?
      def id(name, kind)
        return if name.empty? || name.start_with?("-")

        @git.try("rev-parse", "--verify", "--quiet", "#{name}^{#{kind}}")&.strip
      end

      # The folder of hooks that the user's settings name; nil for the repository's own.
      #: () -> String?
      def hooks_path
        listed = @git.try("config", "--show-origin", "--get-all", "core.hooksPath").to_s.lines(chomp: true)
        path = listed.reject { |line| line.start_with?("command line:") }.last&.split("\t", 2)&.last
        path unless path.nil? || path.empty?
      end

      # The id that a file's content has in the repository, or would have.
      # @param path [String] the file's path in the repository, which says how git converts the content
      #: (String, String) -> String?
      def blob(file, path) = @git.try("hash-object", "--path=#{path}", "--", file)&.strip

      # A digest of a tree's files without one of them: two trees that differ in that file only have the same.
      # @param objects [String, nil] folder of git objects that aren't in the repository
      # Raises Git::Failed.
      #: (String, ?except: String?, ?objects: String?) -> String
      def listing(tree, except: nil, objects: nil)
        variables = objects ? { "GIT_OBJECT_DIRECTORY" => objects } : {}
        entries = @git.call("ls-tree", "-r", "-z", "--full-tree", tree, env: variables).split("\0")
        Digest::SHA256.hexdigest(entries.reject { |entry| entry.split("\t", 2).last == except }.join("\0"))
      end

      # The files that differ between two trees.
      # @param objects for each tree, a folder of git objects that aren't in the repository, or nil
      # Raises Git::Failed.
      #: (String, String, ?objects: [String?, String?]) -> Array[String]
      def changed_paths(one, other, objects: [nil, nil])
        before, after = [one, other].zip(objects).map do |tree, folder|
          variables = folder ? { "GIT_OBJECT_DIRECTORY" => folder } : {}
          @git.call("ls-tree", "-r", "-z", "--full-tree", tree, env: variables).split("\0")
        end
        ((before - after) + (after - before)).map { |entry| entry.split("\t", 2).last }.uniq.sort
      end

      # Whether git ignores a path of the working tree, and the path isn't tracked.
      #: (String) -> bool
      def ignored?(path) = !@git.try("check-ignore", "--quiet", "--", path).nil?

      # Folders of objects: the repository's own and its alternates.
      #: () -> Array[String]
      def objects
        own = File.join(@common_dir, "objects")
        alternates = File.join(own, "info", "alternates")
        lines = File.file?(alternates) ? File.readlines(alternates, chomp: true) : []
        lines = lines.reject { |line| line.empty? || line.start_with?("#") }
        [own, *lines.map { |line| File.expand_path(line, own) }]
      end

      # Whether object ids are SHA-256 hashes.
      #: () -> bool
      def sha256? = @git.try("rev-parse", "--show-object-format").to_s.strip == "sha256"

      # Names and values of the settings that change the content of checked-out files.
      #: () -> Array[[String, String]]
      def content_settings
        rows = @git.try("config", "--local", "-z", "--get-regexp", CONTENT_SETTINGS).to_s.split("\0")
        pairs = rows.map { |row| row.split("\n", 2) }
        pairs.map { |name, value| [name, value || "true"] }
      end

      # The tags as lines of a packed-refs file. Gems compute version numbers from tags.
      #: () -> String
      def packed_tags = @git.try("for-each-ref", "--format=%(objectname) %(refname)", "refs/tags").to_s

      # Path of a file of the repository, e.g. "shallow"; nil when the file doesn't exist.
      #: (String) -> String?
      def file(name)
        path = File.join(@common_dir, name)
        path if File.file?(path)
      end

      # The path relative to the working tree; nil for a path outside.
      # @param path absolute path with links resolved
      #: (String) -> String?
      def inside(path)
        return "" if path == @top

        path.delete_prefix("#{@top}/") if path.start_with?("#{@top}/")
      end

      # The content of a commit.
      # Raises Git::Failed.
      # @api private
      #: (String) -> Content
      def content_of(commit)
        line = @git.call("log", "-1", "--no-show-signature", "--format=%T%x00%s", commit, "--").chomp
        tree, title = line.split("\0", 2)
        content_of_tree(tree, commit: commit, title: title)
      end

      # Whether the repository has a commit.
      # @api private
      #: (String) -> bool
      def commit?(name) = !@git.try("cat-file", "-e", "#{name}^{commit}").nil?

      private

      def content_of_tree(tree, commit: nil, title: nil)
        submodules = links(tree).to_h { |path, linked| [path, submodule(path, linked, tree)] }.compact
        Content.new(repository: self, commit: commit, tree: tree, title: title, submodules: submodules, changed: false)
      end

      # A copy of the user's index, so that git needn't read unchanged files. The copy keeps the index's modification
      # time: git reads files that are as new as the index, since they may have changed.
      def copy_of_index(folder)
        copy = File.join(folder, "index")
        own = File.join(@git_dir, "index")
        FileUtils.cp(own, copy, preserve: true) if File.file?(own)
        copy
      end

      # Untracked files. A path with a slash at its end is another repository; `git add` would not add its files either.
      def untracked
        @git.call("ls-files", "--others", "--exclude-standard", "-z").split("\0").reject { |path| path.end_with?("/") }
      end

      # The submodules of a tree: path → commit.
      def links(tree, variables = {})
        return {} if @git.call("ls-tree", tree, ".gitmodules", env: variables).empty?

        entries = @git.call("ls-tree", "-r", "-z", "--full-tree", tree, env: variables).split("\0")
        entries.each_with_object({}) do |entry, links|
          mode, _, rest = entry.split(" ", 3)
          commit, path = rest.split("\t", 2)
          links[path] = commit if mode == "160000"
        end
      end

      # The content of a submodule, from the user's copy. Without a copy an Absent with the URL of the user's settings;
      # nil without a URL.
      def submodule(path, commit, tree)
        name = module_names(tree)[path] or return
        local = local_module(path, name)
        return local.content_of(commit) if local&.commit?(commit)

        url = @git.try("config", "--get", "submodule.#{name}.url")
        Absent.new(url: url.chomp, commit: commit) if url
      end

      def dirty_submodule(path, commit, scratch)
        return unless @top

        checked_out = File.join(@top, path)
        if File.exist?(File.join(checked_out, ".git"))
          Repository.at(checked_out).dirty(scratch: scratch)
        else
          local = local_module(path, path)
          local.content_of(commit) if local&.commit?(commit)
        end
      end

      def local_module(path, name)
        checked_out = @top && File.join(@top, path)
        return Repository.find(checked_out) if checked_out && File.exist?(File.join(checked_out, ".git"))

        dirs = [@git_dir, @common_dir].uniq.map { |dir| File.join(dir, "modules", name) }
        dir = dirs.find { |each| File.directory?(File.join(each, "objects")) }
        Repository.new(git_dir: dir, common_dir: dir) if dir
      end

      def module_names(tree)
        (@module_names ||= {})[tree] ||= begin
          listed = @git.try("config", "-z", "--blob=#{tree}:.gitmodules", "--get-regexp", '^submodule\..*\.path$').to_s
          listed.split("\0").to_h do |pair|
            pair.split("\n", 2).then { |key, path| [path, key[/\Asubmodule\.(.*)\.path\z/m, 1]] }
          end
        end
      end

      def unknown(name)
        return "--rev #{name}: the branch that is checked out has no upstream" if name.match?(/@\{u(?:pstream)?\}/i)

        guess = closest(name)
        hint = shallow_hint || "; `git fetch` gets what the remote has"
        "--rev #{name}: no such revision in #{@top}#{" (did you mean #{guess}?)" if guess}#{hint}"
      end

      def shallow_hint = ("; this clone is shallow: `git fetch --unshallow` gets the rest" if file("shallow"))

      def closest(name)
        names = @git.try("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags", "refs/remotes")
                    .to_s.lines(chomp: true)
        names.find { |each| each.end_with?("/#{name}") } ||
          (DidYouMean::SpellChecker.new(dictionary: names).correct(name).first if defined?(DidYouMean::SpellChecker))
      end
    end
  end
end
