# frozen_string_literal: true

module Pitwall
  module Collect
    # The default place of a recording: a dated file in `.pitwall/` of the working directory. A `.gitignore` in that
    # folder hides it from git. If the folder can't be written, the file goes to a folder for temporary files.
    # @api private
    module Place
      module_function

      #: (?Time) -> String
      def default(now = Time.now)
        name = now.strftime("%Y-%m-%d-%H%M%S")
        folder = own_folder(File.join(Dir.pwd, ".pitwall")) ||
                 own_folder(File.join(temporary, "pitwall-#{Process.uid}"))
        raise UsageError, "neither #{Dir.pwd} nor #{temporary} can be written: name a recording" unless folder

        path = File.join(folder, "#{name}.pit")
        n = 1
        while File.exist?(path) || File.exist?(path.sub(/pit\z/, "parts"))
          path = File.join(folder, "#{name}-#{n += 1}.pit")
        end
        path
      end

      def temporary
        [ENV["TMPDIR"], "/tmp", "/var/tmp"].find { |dir| dir && File.directory?(dir) && File.writable?(dir) } || "/tmp"
      end

      def own_folder(path)
        Dir.mkdir(path, 0o700) unless File.directory?(path)
        ignore = File.join(path, ".gitignore")
        File.write(ignore, "*\n") unless File.exist?(ignore)
        path if File.writable?(path)
      rescue SystemCallError
        nil
      end
    end
  end
end
