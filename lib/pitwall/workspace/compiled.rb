# frozen_string_literal: true

require "fileutils"
require "pitwall/workspace/git"
require "pitwall/workspace/store"

module Pitwall
  class Workspace
    # What compiling a gem's extensions has put into its tree, kept for trees in which nothing differs that compiling could read:
    # most revisions of a gem change Ruby files only.
    # @api private
    class Compiled
      # Files no build reads, unless it says so; the version is read by many.
      RUBY_ONLY = %r{\A(?:.*/)?lib/(?!(?:.*/)?version\.rb\z).*\.rb\z
                     |\A(?:test|spec|features|bench|benchmarks?|docs?|examples?|\.github)/
                     |\.(?:md|txt|rdoc|rbs)\z}x.freeze
      BUILD_FILE = %r{(?:\A|/)(?:Rakefile|rakefile)(?:\.rb)?\z|\.rake\z|\A(?:.*/)?ext/.*\.rb\z}.freeze
      # A build that loads the gem's own code.
      READS_RUBY = %r{\$LOAD_PATH|\$:|-I\s*\S*lib\b
                      |\blib/(?!\S*version\b)[\w./-]*\.rb
                      |require(?:_relative)?\b[\x20(]*["'][^"']*\blib/(?!\S*version\b)}x.freeze
      LEFT_BEHIND = %r{\.o\z|\Atmp/}.freeze # what compiling needs along the way
      private_constant :RUBY_ONLY, :BUILD_FILE, :READS_RUBY, :LEFT_BEHIND

      # @param identity [Array] of all that isn't in git's index but may differ: the interpreter, carried files
      #: (Store, String, identity: Array[untyped]) -> void
      def initialize(store, folder, identity:)
        @store = store
        @folder = folder
        @identity = identity
        @git = Git.new(folder)
      end

      # Compiles by the block, or puts there what an earlier compilation made.
      #: () { () -> void } -> void
      def once
        fresh = false
        products = @store.fetch("sets", key) do |kept|
          fresh = true
          before = untracked
          yield
          (untracked - before).grep_v(LEFT_BEHIND).each { |path| copy(path, @folder, kept) }
        end
        Dir.children(products).each { |name| FileUtils.cp_r(File.join(products, name), @folder, preserve: true) } unless fresh
      end

      private

      def key = Store.key("compiled", @identity, read_by_builds)

      def untracked = @git.call("ls-files", "--others", "-z").split("\0").reject { |path| path.end_with?("/") }

      def copy(path, from, to)
        FileUtils.mkdir_p(File.dirname(File.join(to, path)))
        FileUtils.cp(File.join(from, path), File.join(to, path), preserve: true)
      end

      # "MODE NAME STAGE\tPATH" of tracked files, with submodules as their commits.
      def read_by_builds
        rows = @git.call("ls-files", "--stage", "-z").split("\0")
        build_files = rows.map { |row| row.split("\t", 2).last }.grep(BUILD_FILE)
        return rows if build_files.any? { |path| reads_ruby?(File.join(@folder, path)) }

        rows.reject { |row| row.split("\t", 2).last.match?(RUBY_ONLY) }
      end

      def reads_ruby?(path) = File.file?(path) && File.binread(path).match?(READS_RUBY)
    end
  end
end
