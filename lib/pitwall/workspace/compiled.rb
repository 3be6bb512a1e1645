# frozen_string_literal: true

require "fileutils"
require "pitwall/workspace/git"
require "pitwall/workspace/store"

module Pitwall
  class Workspace
    # Caches the products of compiling a gem's extensions. Another tree reuses them when no file differs that the build
    # could read. That is common: most revisions of a gem change Ruby files only.
    # @api private
    class Compiled
      # Files that builds don't read, unless a build file names them. Many builds read version.rb, so it isn't included.
      RUBY_ONLY = %r{\A(?:.*/)?lib/(?!(?:.*/)?version\.rb\z).*\.rb\z
                     |\A(?:test|spec|features|bench|benchmarks?|docs?|examples?|\.github)/
                     |\.(?:md|txt|rdoc|rbs)\z}x.freeze
      BUILD_FILE = %r{(?:\A|/)(?:Rakefile|rakefile)(?:\.rb)?\z|\.rake\z|\A(?:.*/)?ext/.*\.rb\z}.freeze
      # Text of a build file that loads the gem's own Ruby code.
      READS_RUBY = %r{\$LOAD_PATH|\$:|-I\s*\S*lib\b
                      |\blib/(?!\S*version\b)[\w./-]*\.rb
                      |require(?:_relative)?\b[\x20(]*["'][^"']*\blib/(?!\S*version\b)}x.freeze
      INTERMEDIATE = %r{\.o\z|\Atmp/}.freeze # files that only the build itself needs
      private_constant :RUBY_ONLY, :BUILD_FILE, :READS_RUBY, :INTERMEDIATE

      # @param folder [String] the clone
      # @param identity [Array] the part of the cache key that git's index doesn't contain: interpreter, carried files
      #: (Store, String, identity: Array[untyped]) -> void
      def initialize(store, folder, identity:)
        @store = store
        @folder = folder
        @identity = identity
        @git = Git.new(folder)
      end

      # Copies cached products into the clone, or calls the block to compile, and caches the products.
      #: () { () -> void } -> void
      def reuse_or_compile
        fresh = false
        products = @store.fetch("sets", key) do |entry|
          fresh = true
          before = untracked
          yield
          (untracked - before).grep_v(INTERMEDIATE).each { |path| copy(path, @folder, entry) }
        end
        unless fresh
          Dir.children(products).each { |name| FileUtils.cp_r(File.join(products, name), @folder, preserve: true) }
        end
      end

      private

      def key = Store.key("compiled", @identity, read_by_builds)

      def untracked = @git.call("ls-files", "--others", "-z").split("\0").reject { |path| path.end_with?("/") }

      def copy(path, from, to)
        FileUtils.mkdir_p(File.dirname(File.join(to, path)))
        FileUtils.cp(File.join(from, path), File.join(to, path), preserve: true)
      end

      # Lines "MODE NAME STAGE\tPATH" of the tracked files that a build may read. A submodule's name is its commit.
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
