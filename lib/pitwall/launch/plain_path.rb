# frozen_string_literal: true

require "digest"
require "tmpdir"
require "fileutils"
require "pitwall/errors"

module Pitwall
  class Launch
    # Ruby splits RUBYOPT at spaces and knows no quoting. A file whose path has a space needs another path.
    module PlainPath
      module_function

      # @param file [String] the absolute path of a Ruby file
      # @param name [String] of a link to the file, if there has to be one. The link is never removed: the command may
      #   leave daemons behind, and without the link no Ruby could start below them
      # @return [String] a path of the file without spaces and without ".rb"
      # @raise [CannotMeasure] there is no folder for a link
      #: (String, String) -> String
      def of(file, name)
        path = file.delete_suffix(".rb")
        return path unless path.match?(/\s/)

        link = File.join(link_folder, Digest::SHA256.hexdigest(file)[0, 16], name)
        FileUtils.mkdir_p(File.dirname(link))
        begin
          File.symlink(file, "#{link}.rb")
        rescue Errno::EEXIST
          nil
        end
        link
      end

      # A folder of the user's own, which stays. It lies in a folder that everybody may write to, so its owner and its
      # permissions are checked.
      def link_folder
        return @link_folder if @link_folder

        folder = [Dir.tmpdir, "/tmp", "/var/tmp"].find { |dir| !dir.match?(/\s/) && File.writable?(dir) }
        raise CannotMeasure, "no temporary folder without a space in its path: set TMPDIR to one" unless folder

        path = File.join(folder, "pitwall-#{Process.euid}")
        begin
          Dir.mkdir(path, 0o700)
        rescue Errno::EEXIST
          stat = File.lstat(path)
          path = Dir.mktmpdir("pitwall-", folder) unless stat.directory? && stat.owned? && (stat.mode & 0o077).zero?
        end
        @link_folder = path
      end
    end
  end
end
