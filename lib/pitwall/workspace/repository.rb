# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/workspace/content"
require "pitwall/workspace/git"

module Pitwall
  class Workspace
    # The user's repository, which is only read: what is in a revision, and what is in the working tree.
    # @api private
    class Repository
      # Of its configuration, what decides how files come out of it.
      CONTENT_SETTINGS = '^(core\.(autocrlf|eol|symlinks|filemode)|filter\..*)$'
      # Files whose content lies elsewhere (LFS) would be put there, in the user's .git.
      WITHOUT_LFS = %w[-c filter.lfs.clean= -c filter.lfs.process= -c filter.lfs.required=false].freeze
      private_constant :CONTENT_SETTINGS, :WITHOUT_LFS

      class << self
        # The repository a folder is in.
        # Raises UsageError.
        #: (String) -> Repository
        def at(dir)
          lines = Git.new(dir).call("rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir", "--show-prefix").split("\n", -1)
          new(top: lines[0], git_dir: lines[1], common_dir: File.expand_path(lines[2], dir), prefix: lines[3].to_s.chomp("/"))
        rescue Git::Failed => error
          raise UsageError, "#{dir}: #{why(error.message)}"
        end

        # @return [Repository, nil]
        #: (String) -> Repository?
        def find(dir)
          at(dir)
        rescue Pitwall::Error
          nil
        end

        private

        def why(text)
          return "not a git repository; --rev, --dirty and patches need one" if text.include?("not a git repository")
          return "the repository has no working tree; run in a clone that has one" if text.include?("work tree")

          text
        end
      end

      # @return [String, nil] the working tree's root
      attr_reader :top
      # @return [String] where objects and settings are, for linked working trees too
      attr_reader :common_dir
      # @return [String] the folder asked for, below top; "" for top itself
      attr_reader :prefix

      def initialize(git_dir:, common_dir:, top: nil, prefix: "")
        @top = top
        @git_dir = git_dir
        @common_dir = common_dir
        @prefix = prefix
        @git = top ? Git.new(top) : Git.new(git_dir, git_dir: git_dir)
      end

      # The branch that is checked out; nil where none is.
      #: () -> String?
      def branch = @git.try("symbolic-ref", "--quiet", "--short", "HEAD")&.strip

      # What a revision holds, whatever names it: a branch, a tag, HEAD~1, main@{yesterday}, a commit.
      # Raises UsageError.
      #: (String) -> Content
      def revision(name)
        commit = @git.try("rev-parse", "--verify", "--quiet", "#{name}^{commit}") unless name.start_with?("-") || name.empty?
        raise UsageError, unknown(name) unless commit

        content_of(commit.strip)
      rescue Git::Failed => error
        raise UsageError, "--rev #{name}: #{error.message}#{shallow_hint}"
      end

      # What the working tree holds: HEAD, what was changed since, and untracked files that aren't ignored.
      # @param scratch [Proc] gives a fresh folder for what is in no object yet
      # Raises UsageError.
      #: (scratch: ^() -> String) -> Content
      def dirty(scratch:)
        folder = scratch.call
        # Without a view of the repository's objects: git renews the times of those that are there already.
        variables = { "GIT_INDEX_FILE" => copy_of_index(folder), "GIT_OBJECT_DIRECTORY" => File.join(folder, "objects") }
        Dir.mkdir(variables["GIT_OBJECT_DIRECTORY"])
        @git.call(*WITHOUT_LFS, "add", "--update", env: variables)
        @git.call(*WITHOUT_LFS, "update-index", "--add", "-z", "--stdin", env: variables, input: untracked.map { |path| "#{path}\0" }.join)
        tree = @git.call("write-tree", "--missing-ok", env: variables).strip
        head = @git.try("rev-parse", "--verify", "--quiet", "HEAD^{commit}")&.strip
        changed = head.nil? || @git.call("rev-parse", "#{head}^{tree}").strip != tree
        submodules = links(tree, variables).to_h { |path, commit| [path, dirty_submodule(path, commit, scratch)] }.compact
        Content.new(repository: self, commit: head, tree: tree, title: nil, extra_objects: variables["GIT_OBJECT_DIRECTORY"], submodules: submodules,
                    changed: changed || submodules.each_value.any? { |each| each.is_a?(Content) && each.changed })
      rescue Git::Failed => error
        raise UsageError, "--dirty: #{error.message}"
      end

      # Whether git leaves a path of the working tree out, and has no file there.
      #: (String) -> bool
      def ignored?(path) = !@git.try("check-ignore", "--quiet", "--", path).nil?

      # Folders of objects: its own, and those it borrows from.
      #: () -> Array[String]
      def objects
        own = File.join(@common_dir, "objects")
        borrowed = File.join(own, "info", "alternates")
        lines = File.file?(borrowed) ? File.readlines(borrowed, chomp: true).reject { |line| line.empty? || line.start_with?("#") } : []
        [own, *lines.map { |line| File.expand_path(line, own) }]
      end

      # @return [Boolean] whether git names objects by SHA-256
      #: () -> bool
      def sha256? = @git.try("rev-parse", "--show-object-format").to_s.strip == "sha256"

      # "NAME\nVALUE" of settings that decide how files come out.
      #: () -> Array[[String, String]]
      def content_settings
        pairs = @git.try("config", "--local", "-z", "--get-regexp", CONTENT_SETTINGS).to_s.split("\0").map { |pair| pair.split("\n", 2) }
        pairs.map { |name, value| [name, value || "true"] }
      end

      # Lines of packed-refs with its tags: version numbers are made of them.
      #: () -> String
      def packed_tags = @git.try("for-each-ref", "--format=%(objectname) %(refname)", "refs/tags").to_s

      # @return [String, nil] path of a file of the repository, if it is there
      #: (String) -> String?
      def file(name)
        path = File.join(@common_dir, name)
        path if File.file?(path)
      end

      # Whether a folder or file (absolute, without links) is in the working tree; its path there.
      #: (String) -> String?
      def inside(path)
        return "" if path == @top

        path.delete_prefix("#{@top}/") if path.start_with?("#{@top}/")
      end

      # @api private
      #: (String) -> Content
      def content_of(commit)
        tree, title = @git.call("log", "-1", "--no-show-signature", "--format=%T%x00%s", commit, "--").chomp.split("\0", 2)
        submodules = links(tree).to_h { |path, linked| [path, submodule(path, linked, tree)] }.compact
        Content.new(repository: self, commit: commit, tree: tree, title: title, submodules: submodules, changed: false)
      end

      # @api private
      #: (String) -> bool
      def commit?(name) = !@git.try("cat-file", "-e", "#{name}^{commit}").nil?

      private

      # A copy keeps what git knows of unchanged files, so that it needn't read them all. It goes by the index's own time too:
      # a file that was changed in the same moment as the index is read.
      def copy_of_index(folder)
        copy = File.join(folder, "index")
        own = File.join(@git_dir, "index")
        FileUtils.cp(own, copy, preserve: true) if File.file?(own)
        copy
      end

      # A folder stands for a repository of its own, which git would not add either.
      def untracked = @git.call("ls-files", "--others", "--exclude-standard", "-z").split("\0").reject { |path| path.end_with?("/") }

      # Paths of submodules in a tree, with the commits they stand at.
      def links(tree, variables = {})
        return {} if @git.call("ls-tree", tree, ".gitmodules", env: variables).empty?

        @git.call("ls-tree", "-r", "-z", "--full-tree", tree, env: variables).split("\0").each_with_object({}) do |entry, links|
          mode, _, rest = entry.split(" ", 3)
          commit, path = rest.split("\t", 2)
          links[path] = commit if mode == "160000"
        end
      end

      # From where the user has it; without a copy at hand from where the user's settings say; nothing where the user has none either.
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

        [@git_dir, @common_dir].uniq.map { |dir| File.join(dir, "modules", name) }.find { |dir| File.directory?(File.join(dir, "objects")) }
                               &.then { |dir| Repository.new(git_dir: dir, common_dir: dir) }
      end

      def module_names(tree)
        (@module_names ||= {})[tree] ||= begin
          listed = @git.try("config", "-z", "--blob=#{tree}:.gitmodules", "--get-regexp", '^submodule\..*\.path$').to_s
          listed.split("\0").to_h { |pair| pair.split("\n", 2).then { |key, path| [path, key[/\Asubmodule\.(.*)\.path\z/m, 1]] } }
        end
      end

      def unknown(name)
        return "--rev #{name}: the branch that is checked out has no upstream" if name.match?(/@\{u(?:pstream)?\}/i)

        guess = closest(name)
        "--rev #{name}: no such revision in #{@top}#{" (did you mean #{guess}?)" if guess}#{shallow_hint || "; `git fetch` gets what the remote has"}"
      end

      def shallow_hint = ("; this clone is shallow: `git fetch --unshallow` gets the rest" if file("shallow"))

      def closest(name)
        names = @git.try("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags", "refs/remotes").to_s.lines(chomp: true)
        names.find { |each| each.end_with?("/#{name}") } ||
          (DidYouMean::SpellChecker.new(dictionary: names).correct(name).first if defined?(DidYouMean::SpellChecker))
      end
    end
  end
end
