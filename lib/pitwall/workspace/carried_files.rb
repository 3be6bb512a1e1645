# frozen_string_literal: true

require "digest"
require "fileutils"
require "pitwall/errors"
require "pitwall/workspace/inner_path"

module Pitwall
  class Workspace
    # Ignored files that a revision needs to run (a key, a local configuration, a compiled asset), carried from the user's working tree.
    # What the revision has itself is left as it is there. Links stay links.
    # @api private
    class CarriedFiles
      READ_WHOLE = 1 << 20 # bytes; of larger files size and time of change tell whether they have changed
      private_constant :READ_WHOLE

      # @param wanted [Array] pairs of a path or pattern and the folder it is relative to
      # Raises UsageError.
      #: (String, Array[[String, String]]) -> void
      def initialize(top, wanted)
        @top = top
        @paths = wanted.flat_map { |pattern, base| find(pattern, base) }.uniq.sort
      end

      # What tells it from others.
      #: () -> Array[untyped]
      def identity = files.map { |path| [path, fingerprint(File.join(@top, path))] }

      # Raises BuildFailed.
      #: (String) -> void
      def into(folder)
        files.each do |path|
          present = File.join(folder, path)
          next if File.exist?(present) || File.symlink?(present)

          FileUtils.copy_entry(File.join(@top, path), InnerPath.make(folder, path), true)
        end
      end

      private

      def find(pattern, base)
        plain = File.expand_path(pattern, base)
        found = present?(plain) ? [plain] : Dir.glob(pattern, base: base).map { |path| File.expand_path(path, base) }
        raise UsageError, "--carry #{pattern}: no such file in #{base}" if found.empty?

        found.map { |path| inside(path, pattern) }
      end

      # Where the path really is, but for a link at its end, which is carried as one.
      def inside(path, pattern)
        path = File.join(File.realpath(File.dirname(path)), File.basename(path)) unless path == @top
        return path.delete_prefix("#{@top}/") if path.start_with?("#{@top}/") && path != File.join(@top, ".git")

        raise UsageError, "--carry #{pattern}: is not a file inside #{@top}"
      end

      # Each file and link; of a folder what is below it.
      def files = @files ||= @paths.flat_map { |path| below(path) }.uniq

      def below(path)
        full = File.join(@top, path)
        return [path] if File.symlink?(full) || !File.directory?(full)

        (Dir.children(full) - [".git"]).sort.flat_map { |name| below(File.join(path, name)) }
      end

      def fingerprint(path)
        stat = File.lstat(path)
        return ["link", File.readlink(path)] if stat.symlink?
        return [stat.mode, Digest::SHA256.file(path).hexdigest] if stat.size <= READ_WHOLE

        [stat.mode, stat.size, stat.mtime.to_r]
      rescue SystemCallError => error
        raise UsageError, "--carry #{path}: #{SystemCallError.new(error.errno).message}"
      end

      def present?(path) = File.exist?(path) || File.symlink?(path)
    end
  end
end
