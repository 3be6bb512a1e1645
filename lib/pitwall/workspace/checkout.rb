# frozen_string_literal: true

require "fileutils"
require "pitwall/workspace/content"
require "pitwall/workspace/git"

module Pitwall
  class Workspace
    # Checks a tree out into a folder, as a clone of its own. The clone reads the objects of the user's repository.
    # The clone has the tags, and an index and a commit, because gemspecs call `git ls-files`.
    # Nothing that is done in the clone changes the user's repository.
    # @api private
    class Checkout
      #: (BuildLog) -> void
      def initialize(log)
        @log = log
      end

      # Checks out the content, with its submodules.
      # Raises BuildFailed.
      #: (Content, String) -> void
      def call(content, folder)
        repository = content.repository
        git_dir = make_clone(repository, folder)
        if content.extra_objects
          FileUtils.cp_r(File.join(content.extra_objects, "."), File.join(git_dir, "objects"))
        end
        detach(git_dir, content.commit) if content.commit
        @log.run("git checkout", git(folder, "read-tree", "--reset", "-u", content.tree),
                 dir: folder, env: Git::ENVIRONMENT)
        content.submodules.each do |path, below|
          inner = File.join(folder, path)
          FileUtils.mkdir_p(inner)
          below.is_a?(Absent) ? fetch(below, path, inner) : call(below, inner)
        end
      end

      private

      def make_clone(repository, folder)
        format = repository.sha256? ? ["--object-format=sha256"] : []
        @log.run("git init", git(folder, "init", "--quiet", "--template=", *format, "."),
                 dir: folder, env: Git::ENVIRONMENT)
        git_dir = File.join(folder, ".git")
        FileUtils.mkdir_p(File.join(git_dir, "objects", "info"))
        alternates = repository.objects.map { |each| "#{each}\n" }.join
        File.write(File.join(git_dir, "objects", "info", "alternates"), alternates)
        copy(repository, "shallow", git_dir)
        copy(repository, "info/attributes", git_dir)
        File.write(File.join(git_dir, "packed-refs"), repository.packed_tags)
        [["submodule.active", "."], *repository.content_settings].each do |name, value|
          @log.run("git config", git(folder, "config", "--add", name, value), dir: folder, env: Git::ENVIRONMENT)
        end
        git_dir
      end

      def copy(repository, name, git_dir)
        source = repository.file(name) or return

        FileUtils.mkdir_p(File.dirname(File.join(git_dir, name)))
        FileUtils.cp(source, File.join(git_dir, name))
      end

      def detach(git_dir, commit) = File.write(File.join(git_dir, "HEAD"), "#{commit}\n")

      def fetch(absent, path, folder)
        step = "git fetch of submodule #{path}"
        options = { dir: folder, env: Git::ENVIRONMENT }
        @log.run(step, git(folder, "init", "--quiet", "--template=", "."), **options)
        @log.run(step, git(folder, "fetch", "--quiet", "--depth=1", "--", absent.url, absent.commit), **options)
        detach(File.join(folder, ".git"), absent.commit)
        @log.run(step, git(folder, "read-tree", "--reset", "-u", absent.commit), **options)
      end

      def git(folder, *words) = Git.new(folder).command(*words)
    end
  end
end
