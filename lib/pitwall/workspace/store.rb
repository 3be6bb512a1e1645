# frozen_string_literal: true

require "digest"
require "fileutils"
require "find"
require "tmpdir"
require "pitwall/errors"

module Pitwall
  class Workspace
    # The cache folder. Entries are stored by key, until {#prune} removes them.
    #
    #   trees/KEY      a checkout with its compiled extensions
    #   rubies/KEY     an interpreter built from source
    #   gems/KEY       gems installed for one Ruby
    #   sets/KEY       a gem with its dependencies, or other files of a side
    #   …/KEY.lock     the entry's lock: shared while the entry is used, exclusive while it is built.
    #                  Content: the entry's size in bytes. Modification time: the last use
    #   building/NAME  unfinished entries of one process; each is moved to its place when finished.
    #                  A NAME.lock that no process holds is left from a killed process
    #   logs/          output of builds
    #
    # @api private
    class Store
      KINDS = %w[trees gems rubies sets].freeze
      KEY_SIZE = 20 # hex digits; constant, so that the paths of all sides have the same length
      LOG_AGE = 30 * 86_400 # seconds after which logs are removed
      private_constant :KINDS, :KEY_SIZE, :LOG_AGE

      class << self
        # The default cache folder.
        #: (?Hash[String, String]) -> String
        def place(environment = ENV)
          own = environment["PITWALL_CACHE"].to_s
          return File.join(File.expand_path(own), "workspace") unless own.empty?

          shared = environment["XDG_CACHE_HOME"].to_s
          shared = File.join(environment["HOME"].to_s, ".cache") unless shared.start_with?("/")
          File.join(shared, "pitwall", "workspace")
        end

        # The key of an entry that is defined by these parts: strings, nil, arrays and hashes.
        #: (*untyped) -> String
        def key(*parts) = Digest::SHA256.hexdigest(serialize(parts))[0, KEY_SIZE]

        private

        # Equal values give equal bytes. Different values give different bytes.
        def serialize(value)
          case value
          when Array then "[#{value.map { |each| serialize(each) }.join}]"
          when Hash then "{#{value.map { |key, each| serialize([key, each]) }.sort.join}}"
          when nil then "-"
          else "#{value.to_s.bytesize}:#{value.to_s.b}".b
          end
        end
      end

      # @return [String] path of the cache folder
      attr_reader :root
      # @return [Boolean] whether {#close} removes the folder: true if the wanted folder can't be written
      attr_reader :temporary
      # @return [Boolean] whether an entry was added or has grown
      attr_reader :grown

      # @param on_step [Proc] called with a text when this process waits for another
      #: (?String, ?on_step: ^(String) -> void) -> void
      def initialize(root = self.class.place, on_step: ->(_) {})
        @on_step = on_step
        @locks = {}
        @grown = false
        @root = make(root)
      rescue SystemCallError
        @temporary = true
        @root = make(Dir.mktmpdir("pitwall-workspace-"))
      end

      # Path of an entry, whether it exists or not.
      # @param kind "trees", "gems", "rubies" or "sets"
      #: (String, String) -> String
      def path(kind, key) = File.join(@root, kind, key)

      # Path of a log file.
      #: (String) -> String
      def log(name) = File.join(@root, "logs", "#{name}.log")

      # An entry's path. The block builds the entry where it doesn't exist. The entry can't be removed until {#close}.
      # @param kind "trees", "gems", "rubies" or "sets"
      # @param valid [Proc, nil] tells whether an existing entry is usable; if not, the entry is built again
      # @yield [String] the folder to fill
      #: (String, String, ?valid: (^(String) -> bool)?) { (String) -> void } -> String
      def fetch(kind, key, valid: nil, &make)
        path = path(kind, key)
        @locks[path] ||= lock_entry(path, valid, &make)
        path
      end

      # A new folder, which {#close} removes.
      #: (?String) -> String
      def scratch(name = "scratch") = Dir.mktmpdir("#{name}-", session)

      # Runs the block while no other process runs a block of the same name.
      #: [T] (String) { () -> T } -> T
      def exclusively(name)
        lock = lock_file(File.join(@root, "#{name}.lock")) { |file| wait_for(file, File::LOCK_EX, name) }
        yield
      ensure
        lock&.close
      end

      # Stores an entry's new size, after gems were installed into it.
      #: (String) -> void
      def update_size(path)
        File.write("#{path}.lock", size(path).to_s)
        @grown = true
      end

      # Removes the least recently used entries until the rest fits. Entries in use stay.
      # @return [Integer] size of the cache in bytes
      #: (Integer) -> Integer
      def prune(limit_bytes)
        remove_abandoned
        remove_old_logs
        locks = KINDS.flat_map { |kind| Dir[File.join(@root, kind, "*.lock")] }.filter_map { |file| use_of(file) }
        total = locks.sum(&:last)
        locks.sort_by { |_, used,| used }.each do |file, _, bytes|
          there = File.exist?(file.delete_suffix(".lock"))
          next if there && total <= limit_bytes

          total -= bytes if remove(file)
        end
        total
      end

      # Releases all locks, and removes this process's unfinished entries.
      #: () -> void
      def close
        @locks.each_value { |lock| lock.close unless lock.closed? }
        @locks.clear
        if @session_lock
          FileUtils.rm_rf(@session)
          File.unlink(@session_lock.path)
          @session_lock.close
          @session = @session_lock = nil
        end
        FileUtils.rm_rf(@root) if @temporary
      rescue SystemCallError
        nil # the next session removes the rest
      end

      private

      def make(root)
        FileUtils.mkdir_p(root, mode: 0o700)
        root = File.realpath(root)
        (KINDS + %w[building logs]).each { |kind| FileUtils.mkdir_p(File.join(root, kind)) }
        # The cache may lie in a working tree, where git should ignore it.
        File.write(File.join(root, ".gitignore"), "*\n") unless File.exist?(File.join(root, ".gitignore"))
        unless (KINDS + %w[building logs]).all? { |kind| File.writable?(File.join(root, kind)) }
          raise Errno::EACCES, root
        end

        root
      end

      # Takes an entry's shared lock. Builds the entry first where it doesn't exist or isn't valid.
      def lock_entry(path, valid, &make)
        loop do
          lock = lock_file("#{path}.lock") { |file| wait_for(file, File::LOCK_SH, path) }
          return touch(lock) if File.directory?(path) && (valid.nil? || valid.call(path))

          lock.close
          lock = lock_file("#{path}.lock") { |file| wait_for(file, File::LOCK_EX, path) }
          build_or_close(path, lock, &make) unless File.directory?(path) && (valid.nil? || valid.call(path))
          # Between the exclusive and the shared lock another process may lock the finished entry, or remove it.
          lock.flock(File::LOCK_SH)
          return touch(lock) if File.directory?(path)

          lock.close
        end
      end

      # Where the build fails, the next try in this process would wait for its own lock.
      def build_or_close(path, lock, &make)
        built = false
        build(path, lock, &make)
        built = true
      ensure
        lock.close unless built
      end

      # Stores the time of the last use.
      def touch(lock)
        now = Time.now
        File.utime(now, now, lock.path)
        lock
      rescue SystemCallError
        lock
      end

      # Opens and locks a file. Tries again when another process has removed the file in between: a lock on a removed
      # file excludes no process.
      def lock_file(path)
        loop do
          file = File.open(path, File::RDWR | File::CREAT, 0o600)
          yield file
          return file if same_file?(file, path)

          file.close
        end
      end

      def same_file?(file, path)
        File.identical?(file, path)
      rescue SystemCallError
        false
      end

      def wait_for(file, mode, what)
        return if file.flock(mode | File::LOCK_NB)

        @on_step.call("waiting for another pitwall that uses #{File.basename(what)}")
        file.flock(mode)
      end

      def build(path, lock)
        folder = File.join(session, File.basename(path))
        discard(path)
        Dir.mkdir(folder)
        yield folder
        bytes = size(folder)
        File.rename(folder, path)
        lock.rewind
        lock.truncate(0)
        lock.write(bytes.to_s)
        lock.flush
        @grown = true
      ensure
        FileUtils.rm_rf(folder) if folder
      end

      # Removes an entry. The entry is renamed first, so that other processes never see a half-removed entry.
      def discard(path)
        return unless File.exist?(path)

        away = Dir.mktmpdir("away-", session)
        File.rename(path, File.join(away, "it"))
        FileUtils.rm_rf(away)
      end

      # This process's folder in building/, created at its first use.
      def session
        @session ||= begin
          remove_abandoned
          name = File.join(@root, "building", "#{Process.pid}-#{rand(36**6).to_s(36)}")
          @session_lock = lock_file("#{name}.lock") { |file| file.flock(File::LOCK_EX) }
          Dir.mkdir(name, 0o700)
          name
        end
      end

      # Removes the folders of killed processes in building/: no process holds their locks.
      def remove_abandoned
        Dir[File.join(@root, "building", "*.lock")].each do |path|
          File.open(path) do |file|
            next unless file.flock(File::LOCK_EX | File::LOCK_NB)

            FileUtils.rm_rf(path.delete_suffix(".lock"))
            File.unlink(path)
          end
        rescue SystemCallError
          nil # another process was faster
        end
      end

      def use_of(lock_path)
        [lock_path, File.mtime(lock_path), File.read(lock_path).to_i]
      rescue SystemCallError
        nil # another process has removed it
      end

      def remove(lock_path)
        File.open(lock_path) do |lock|
          return false unless lock.flock(File::LOCK_EX | File::LOCK_NB) && same_file?(lock, lock_path)

          discard(lock_path.delete_suffix(".lock"))
          File.unlink(lock_path)
          true
        end
      rescue SystemCallError
        false
      end

      def remove_old_logs
        Dir[File.join(@root, "logs", "*.log")].each do |file|
          File.unlink(file) if Time.now - File.mtime(file) > LOG_AGE
        end
      rescue SystemCallError
        nil
      end

      def size(path)
        bytes = 0
        Find.find(path) { |file| bytes += File.lstat(file).blocks.to_i * 512 }
        bytes
      rescue SystemCallError
        bytes
      end
    end
  end
end
