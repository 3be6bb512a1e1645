# frozen_string_literal: true

require "fileutils"
require "pitwall/workspace/inner_path"

module Pitwall
  class Workspace
    # Copies the user's benchmark file into a cached tree, over the revision's version of the file. The revision's
    # version is saved, and restored when another benchmark is placed in the tree.
    #
    # Files in the state folder:
    #   path      path of the placed file in the tree
    #   original  the revision's version, if there is one
    #   lock      held shared while a benchmark is measured, exclusive while a file is replaced
    # @api private
    class PlacedFile
      class << self
        # Places a file and locks it until {#close}.
        # @param root [String] the tree
        # @param state [String] the state folder, relative to the tree
        # @param source [String, nil] the user's file
        # @param relative [String, nil] its path in the tree; nil: place no file, restore the revision's version
        # @return [PlacedFile, nil] nil while another process measures with another benchmark in that tree
        # Raises BuildFailed when the path leads out of the tree.
        #: (String, String, ?String?, ?String?) -> PlacedFile?
        def put(root, state, source = nil, relative = nil)
          placed = new(root, File.join(root, state), source, relative)
          placed if placed.acquire
        end

        # Path of the placed file in a tree; nil where there is none.
        #: (String, String) -> String?
        def at(root, state)
          file = File.join(root, state, "path")
          File.read(file) if File.file?(file)
        end
      end

      #: (String, String, String?, String?) -> void
      def initialize(root, state, source, relative)
        @root = root
        @state = state
        @source = source
        @relative = relative
      end

      # Replaces the file if needed, and takes the shared lock. False when another process holds the lock with another
      # benchmark.
      # @api private
      #: () -> bool
      def acquire
        FileUtils.mkdir_p(@state)
        @lock = File.open(File.join(@state, "lock"), File::RDWR | File::CREAT, 0o600)
        until lock_if_in_place
          unless @lock.flock(File::LOCK_EX | File::LOCK_NB)
            close
            return false
          end
          restore
          replace if @relative
        end
        true
      end

      # Releases the lock.
      #: () -> void
      def close = @lock.close

      private

      def lock_if_in_place
        @lock.flock(File::LOCK_SH)
        return true if in_place?

        @lock.flock(File::LOCK_UN)
        false
      end

      def in_place?
        present = self.class.at(@root, @state.delete_prefix("#{@root}/"))
        return present.nil? unless @relative
        return false unless [nil, @relative].include?(present)

        target = File.join(@root, @relative)
        File.file?(target) && !File.symlink?(target) && FileUtils.identical?(@source, target)
      end

      # Writes the state before the file, so that the tree can be restored even if the process is killed in between.
      def replace
        target = InnerPath.make(@root, @relative)
        FileUtils.rm_f(state("original"))
        FileUtils.cp(target, state("original"), preserve: true) if File.file?(target)
        File.write(state("path"), @relative)
        FileUtils.cp(@source, "#{target}.pitwall")
        File.rename("#{target}.pitwall", target)
      end

      def restore
        return unless File.file?(state("path"))

        target = InnerPath.make(@root, File.read(state("path")))
        if File.file?(state("original")) then File.rename(state("original"), target)
        elsif File.exist?(target) then File.unlink(target)
        end
        File.unlink(state("path"))
      end

      def state(name) = File.join(@state, name)
    end
  end
end
