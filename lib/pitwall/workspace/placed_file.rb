# frozen_string_literal: true

require "fileutils"
require "pitwall/workspace/inner_path"

module Pitwall
  class Workspace
    # The benchmark's file in a cached tree: the user's own as it stands, in place of what the revision has there (or hasn't), for as
    # long as no other benchmark is put there. What it replaced is kept and comes back.
    #
    # In its folder: `path` (where in the tree), `original` (what was there), `lock` (shared while a benchmark is measured).
    # @api private
    class PlacedFile
      class << self
        # @param relative [String, nil] nil: none, the tree as it is
        # @return [PlacedFile, nil] nil where another process measures with another benchmark in that tree
        #: (String, String, ?String?, ?String?) -> PlacedFile?
        def put(root, notes, source = nil, relative = nil)
          placed = new(root, File.join(root, notes), source, relative)
          placed if placed.take
        end

        # Where in the tree a benchmark is.
        #: (String, String) -> String?
        def at(root, notes)
          note = File.join(root, notes, "path")
          File.read(note) if File.file?(note)
        end
      end

      def initialize(root, notes, source, relative)
        @root = root
        @notes = notes
        @source = source
        @relative = relative
      end

      # @api private
      def take
        FileUtils.mkdir_p(@notes)
        @lock = File.open(File.join(@notes, "lock"), File::RDWR | File::CREAT, 0o600)
        until hold_as_it_is
          unless @lock.flock(File::LOCK_EX | File::LOCK_NB)
            close
            return false
          end
          put_back
          replace if @relative
        end
        true
      end

      #: () -> void
      def close = @lock.close

      private

      def hold_as_it_is
        @lock.flock(File::LOCK_SH)
        return true if as_wished?

        @lock.flock(File::LOCK_UN)
        false
      end

      def as_wished?
        present = self.class.at(@root, @notes.delete_prefix("#{@root}/"))
        return present.nil? unless @relative
        return false unless [nil, @relative].include?(present)

        target = File.join(@root, @relative)
        File.file?(target) && !File.symlink?(target) && FileUtils.identical?(@source, target)
      end

      # Noted before it is done: a process killed in between leaves a tree that can be put right.
      def replace
        target = InnerPath.make(@root, @relative)
        FileUtils.rm_f(note("original"))
        FileUtils.cp(target, note("original"), preserve: true) if File.file?(target)
        File.write(note("path"), @relative)
        FileUtils.cp(@source, "#{target}.pitwall")
        File.rename("#{target}.pitwall", target)
      end

      def put_back
        return unless File.file?(note("path"))

        target = InnerPath.make(@root, File.read(note("path")))
        if File.file?(note("original")) then File.rename(note("original"), target)
        elsif File.exist?(target) then File.unlink(target)
        end
        File.unlink(note("path"))
      end

      def note(name) = File.join(@notes, name)
    end
  end
end
