# frozen_string_literal: true

module Pitwall
  module Fastboot
    # Where the pack lies, and whether code from there may be run.
    # @api private
    module Folder
      NAME = "pitwall"
      LAZY_GEMS = "lazy-gems-" # begins the names of lists of lazy gems (LazyList)
      OTHERS_WRITE = 0o022
      WORLD_WRITES = 0o002
      SMALL = 1024 * 1024 # bytes: more than any file but a pack has
      private_constant :OTHERS_WRITE, :WORLD_WRITES, :SMALL

      module_function

      # The folder of the cache: PITWALL_BOOT_CACHE; or tmp/cache/pitwall of the application (the folder of the Gemfile,
      # if it has a tmp/); or pitwall in the user's folder of caches. nil: there is none.
      #: (?Hash[String, String], ?here: String?) -> String?
      def default(env = ENV, here: (Dir.pwd rescue nil))
        given = env["PITWALL_BOOT_CACHE"].to_s
        return File.expand_path(given, here || "/") unless given.empty?

        application(env, here) || of_user(env)
      end

      def application(env, here)
        gemfile = env["BUNDLE_GEMFILE"].to_s
        root = gemfile.start_with?("/") ? File.dirname(gemfile) : here
        return if root.nil? || !File.file?(File.join(root, "Gemfile")) || !File.directory?(File.join(root, "tmp"))

        File.join(root, "tmp/cache", NAME)
      end

      def of_user(env)
        caches = env["XDG_CACHE_HOME"].to_s
        return File.join(caches, NAME) if caches.start_with?("/")

        home = env["HOME"].to_s
        File.join(home, ".cache", NAME) if home.start_with?("/")
      end

      # Why code from this folder must not be run: other users could have put it there. nil: it may. Missing folders
      # are no reason.
      #: (String) -> String?
      def refusal(folder)
        own = stat(folder)
        return "#{folder} is no folder" if own && !own.directory?
        return "#{folder} belongs to another user" if own && foreign?(own)
        return "other users may write #{folder}" if own && own.mode.anybits?(OTHERS_WRITE)

        above = folder
        until above == File.dirname(above)
          above = File.dirname(above)
          found = stat(above) or next
          return "#{above}, above the cache, belongs to another user" if foreign?(found)
          return "other users may rename what is in #{above}" if found.mode.anybits?(WORLD_WRITES) && !found.sticky?
        end
      end

      # Could another user have written this file? Also true if there is none.
      #: (String) -> bool
      def doubtful?(file)
        found = stat(file)
        found.nil? || !found.file? || foreign?(found) || found.mode.anybits?(OTHERS_WRITE)
      end

      # Makes a folder and those above it.
      # @raise [SystemCallError]
      #: (String) -> void
      def make(folder)
        return if File.directory?(folder)

        make(File.dirname(folder))
        Dir.mkdir(folder, 0o755)
      rescue Errno::EEXIST
        raise unless File.directory?(folder)
      end

      # To write beyond the limit of the process (`ulimit -f`) would end the program by SIGXFSZ.
      # @raise [Errno::EFBIG] the limit is smaller
      #: (Integer) -> void
      def check_room(bytes)
        raise Errno::EFBIG if Process.getrlimit(:FSIZE).first < bytes
      end

      # Sets up a file that is to be written. Each write goes to the file at once: if a child were forked meanwhile, it
      # would write what Ruby keeps in its buffer once more when it ends.
      #: (File) -> void
      def prepare(file)
        file.binmode # Rails sets an encoding for all files
        file.sync = true
      end

      # Writes a file beside the path, then renames it. Where that fails, nothing is left.
      # @param flag what to do with a file that a killed process has left: File::EXCL (fail), File::TRUNC (replace it)
      # @yieldparam file [File]
      # @raise [SystemCallError]
      #: (String, Integer) { (File) -> void } -> void
      def replace(path, flag)
        check_room(SMALL)
        temporary = "#{path}.#{Process.pid}.new"
        File.open(temporary, File::WRONLY | File::CREAT | File::NOFOLLOW | flag, 0o644) do |file|
          prepare(file)
          yield file
        end
        File.rename(temporary, path)
      rescue StandardError
        File.unlink(temporary) if temporary && File.exist?(temporary)
        raise
      end

      # The first bytes of a file, as UTF-8 that may be invalid.
      # @raise [SystemCallError]
      #: (String, Integer) -> String
      def text(path, bytes) = String.new(File.binread(path, bytes) || "", encoding: "UTF-8") # nil: the file is empty

      # An exception would be printed with --debug.
      def stat(path)
        File.stat(path) if File.exist?(path)
      rescue SystemCallError
        nil
      end

      def foreign?(found) = found.uid != Process.euid && !found.uid.zero?
    end
  end
end
