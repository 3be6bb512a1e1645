# frozen_string_literal: true

require "fileutils"
require "pitwall/workspace/failures"

module Pitwall
  class Workspace
    # Paths inside of a clone. A link among a path's folders could lead out of the clone, to the user's own files.
    # @api private
    module InnerPath
      module_function

      # The absolute path of a file that will be written. Creates the path's folders. Removes a link at the path itself.
      # Raises BuildFailed when a folder of the path is a file, or a link that leads out of `root`.
      #: (String, String) -> String
      def make(root, relative)
        *folders, name = relative.split("/")
        folder = folders.inject(root) do |outer, each|
          path = File.join(outer, each)
          if !File.symlink?(path) && !File.exist?(path) then Dir.mkdir(path)
          elsif !File.directory?(path) then raise BuildFailed, "#{relative}: #{each} is a file in #{root}"
          elsif File.symlink?(path)
            path = File.realpath(path)
            unless path.start_with?("#{root}/")
              raise BuildFailed, "#{relative}: #{each} is a link that leads out of #{root}"
            end
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
