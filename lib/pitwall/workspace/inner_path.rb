# frozen_string_literal: true

require "fileutils"
require "pitwall/workspace/failures"

module Pitwall
  class Workspace
    # Paths below a folder into which files are put: a link on the way could lead out of it, into the user's own files.
    # @api private
    module InnerPath
      module_function

      # The absolute path, with the folders on the way made. A link that stands at the path itself is removed.
      # Raises BuildFailed.
      #: (String, String) -> String
      def make(root, relative)
        *folders, name = relative.split("/")
        folder = folders.inject(root) do |outer, each|
          path = File.join(outer, each)
          if !File.symlink?(path) && !File.exist?(path) then Dir.mkdir(path)
          elsif !File.directory?(path) then raise BuildFailed, "#{relative}: #{each} is a file in #{root}"
          elsif File.symlink?(path)
            path = File.realpath(path)
            raise BuildFailed, "#{relative}: #{each} is a link that leads out of #{root}" unless path.start_with?("#{root}/")
          end
          path
        end
        target = File.join(folder, name)
        File.unlink(target) if File.symlink?(target)
        target
      end
    end
  end
end
