# frozen_string_literal: true

require "digest"
require "tmpdir"
require "fileutils"
require "pitwall/errors"

module Pitwall
  class Launch
    # Paths for RUBYOPT. Ruby splits RUBYOPT at spaces and knows no quoting, so a file whose path has a space is reached
    # through a link.
    module PlainPath
      module_function

      # @param file [String] the absolute path of a Ruby file
      # @param name [String] of a link to the file, if there has to be one. The link is never removed: the command may
      #   leave daemons behind, and without the link no Ruby could start below them
      # @return [String] a path of the file without spaces and without ".rb"
      # @raise [CannotMeasure] each folder for temporary files has a space in its path, or can't be written
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

      # The folder of links. It belongs to the user, and is never removed. Everybody may write to the folder above it.
      # So its owner and its permissions are checked.
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
