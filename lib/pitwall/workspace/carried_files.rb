# frozen_string_literal: true

require "digest"
require "fileutils"
require "pitwall/errors"
require "pitwall/workspace/inner_path"

module Pitwall
  class Workspace
    # Ignored files that a revision needs to run, e.g. a key, a local configuration or a compiled asset.
    # The files are copied from the user's working tree. A file that the revision has is not overwritten.
    # Links are copied as links.
    # @api private
    class CarriedFiles
      MAX_HASHED_BYTES = 1 << 20 # larger files are compared by size and modification time, not by content
      private_constant :MAX_HASHED_BYTES

      # @param top [String] root of the user's working tree
      # @param patterns [Array] pairs of a path or pattern and the folder that it is relative to
      # Raises UsageError when a pattern matches no file, or a file outside of the tree.
      #: (String, Array[[String, String]]) -> void
      def initialize(top, patterns)
        @top = top
        @paths = patterns.flat_map { |pattern, base| find(pattern, base) }.uniq.sort
      end

      # A part of the clone's cache key: paths and contents.
      # Raises UsageError when a file can't be read.
      #: () -> Array[untyped]
      def identity = files.map { |path| [path, fingerprint(File.join(@top, path))] }

      # Copies the files into a clone.
      # Raises BuildFailed when a path leads out of the clone.
      #: (String) -> void
      def copy_to(folder)
        files.each do |path|
          present = File.join(folder, path)
          next if File.exist?(present) || File.symlink?(present)

          FileUtils.copy_entry(File.join(@top, path), InnerPath.make(folder, path), true)
        end
      end

      private

      def find(pattern, base)
        plain = File.expand_path(pattern, base)
        found = exist?(plain) ? [plain] : Dir.glob(pattern, base: base).map { |path| File.expand_path(path, base) }
        raise UsageError, "--carry #{pattern}: no such file in #{base}" if found.empty?

        found.map { |path| inside(path, pattern) }
      end

      # The path relative to the tree, with links of its folders resolved. A link at the path's end is kept as a link.
      def inside(path, pattern)
        path = File.join(File.realpath(File.dirname(path)), File.basename(path)) unless path == @top
        return path.delete_prefix("#{@top}/") if path.start_with?("#{@top}/") && path != File.join(@top, ".git")

        raise UsageError, "--carry #{pattern}: is not a file inside #{@top}"
      end

      # Paths of all files and links. A folder stands for all files below it.
      def files = @files ||= @paths.flat_map { |path| below(path) }.uniq

      def below(path)
        full = File.join(@top, path)
        return [path] if File.symlink?(full) || !File.directory?(full)

        (Dir.children(full) - [".git"]).sort.flat_map { |name| below(File.join(path, name)) }
      end

      def fingerprint(path)
        stat = File.lstat(path)
        return ["link", File.readlink(path)] if stat.symlink?
        return [stat.mode, Digest::SHA256.file(path).hexdigest] if stat.size <= MAX_HASHED_BYTES

        [stat.mode, stat.size, stat.mtime.to_r]
      rescue SystemCallError => error
        raise UsageError, "--carry #{path}: #{SystemCallError.new(error.errno).message}"
      end

      def exist?(path) = File.exist?(path) || File.symlink?(path)
    end
  end
end
