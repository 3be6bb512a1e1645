# frozen_string_literal: true

require "digest"
require "fileutils"
require "find"
require "tmpdir"
require "pitwall/errors"

module Pitwall
  class Workspace
    # The cache folder: what was built stays there, by key, until room is needed.
    #
    #   trees/KEY      a checkout with its compiled extensions      rubies/KEY   an interpreter built from source
    #   gems/KEY       gems installed for one Ruby                  sets/KEY     a gem with what it needs; files that go with a side
    #   …/KEY.lock     held shared while in use, exclusive while made; its content is the size in bytes, its mtime the last use
    #   building/NAME  what is being made; moved in place when it is whole. A NAME.lock that nobody holds: left by a killed process
    #   logs/          what builds printed
    #
    # @api private
    class Store
      KINDS = %w[trees gems rubies sets].freeze
      KEY_SIZE = 20 # hex digits; the same for all, so that the paths of all sides are equally long
      LOG_AGE = 30 * 86_400 # seconds
      private_constant :KINDS, :KEY_SIZE, :LOG_AGE

      class << self
        # Where the cache is by default.
        #: (?Hash[String, String]) -> String
        def place(environment = ENV)
          own = environment["PITWALL_CACHE"].to_s
          return File.join(File.expand_path(own), "workspace") unless own.empty?

          shared = environment["XDG_CACHE_HOME"].to_s
          shared = File.join(environment["HOME"].to_s, ".cache") unless shared.start_with?("/")
          File.join(shared, "pitwall", "workspace")
        end

        # A key for whatever the parts say.
        #: (*untyped) -> String
        def key(*parts) = Digest::SHA256.hexdigest(plain(parts))[0, KEY_SIZE]

        private

        # Equal values give equal bytes, and different ones different bytes.
        def plain(value)
          case value
          when Array then "[#{value.map { |each| plain(each) }.join}]"
          when Hash then "{#{value.map { |key, each| plain([key, each]) }.sort.join}}"
          when nil then "-"
          else "#{value.to_s.bytesize}:#{value.to_s.b}".b
          end
        end
      end

      # @return [String]
      attr_reader :root
      # @return [Boolean] whether it goes away with this process
      attr_reader :temporary
      # @return [Boolean] whether anything was made
      attr_reader :grown

      #: (?String, ?on_step: ^(String) -> void) -> void
      def initialize(root = self.class.place, on_step: ->(_) {})
        @on_step = on_step
        @held = {}
        @grown = false
        @root = make(root)
      rescue SystemCallError
        @temporary = true
        @root = make(Dir.mktmpdir("pitwall-workspace-"))
      end

      # Where an entry lies once it is made.
      #: (String, String) -> String
      def path(kind, key) = File.join(@root, kind, key)

      #: (String) -> String
      def log(name) = File.join(@root, "logs", "#{name}.log")

      # The entry, made by the block where it isn't there, and kept from being removed until {#close}.
      # @param valid [Proc, nil] whether an entry that is there is still good; otherwise it is made again
      # @yield [String] the folder to fill
      # @return [String] its path
      #: (String, String, ?valid: (^(String) -> bool)?) { (String) -> void } -> String
      def fetch(kind, key, valid: nil, &make)
        path = path(kind, key)
        @held[path] ||= hold(path, valid, &make)
        path
      end

      # A fresh folder that goes away with {#close}.
      #: (?String) -> String
      def scratch(name = "scratch") = Dir.mktmpdir("#{name}-", session)

      # Runs the block while no other process runs one of the same name.
      #: [T] (String) { () -> T } -> T
      def exclusively(name)
        lock = lock_file(File.join(@root, "#{name}.lock")) { |file| wait_for(file, File::LOCK_EX, name) }
        yield
      ensure
        lock&.close
      end

      # Notes how large an entry has become.
      #: (String) -> void
      def weigh(path)
        File.write("#{path}.lock", size(path).to_s)
        @grown = true
      end

      # Removes what was used longest ago until the rest fits, but nothing that is in use.
      # @return [Integer] bytes left
      #: (Integer) -> Integer
      def prune(limit_bytes)
        sweep
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

      # Gives everything free.
      #: () -> void
      def close
        @held.each_value { |lock| lock.close unless lock.closed? }
        @held.clear
        if @session_lock
          FileUtils.rm_rf(@session)
          File.unlink(@session_lock.path)
          @session_lock.close
          @session = @session_lock = nil
        end
        FileUtils.rm_rf(@root) if @temporary
      rescue SystemCallError
        nil # what is left is swept the next time
      end

      private

      def make(root)
        FileUtils.mkdir_p(root, mode: 0o700)
        root = File.realpath(root)
        (KINDS + %w[building logs]).each { |kind| FileUtils.mkdir_p(File.join(root, kind)) }
        # It may lie in somebody's working tree.
        File.write(File.join(root, ".gitignore"), "*\n") unless File.exist?(File.join(root, ".gitignore"))
        raise Errno::EACCES, root unless (KINDS + %w[building logs]).all? { |kind| File.writable?(File.join(root, kind)) }

        root
      end

      def hold(path, valid, &make)
        loop do
          lock = lock_file("#{path}.lock") { |file| wait_for(file, File::LOCK_SH, path) }
          return used(lock) if File.directory?(path) && (valid.nil? || valid.call(path))

          lock.close
          lock = lock_file("#{path}.lock") { |file| wait_for(file, File::LOCK_EX, path) }
          build(path, lock, &make) unless File.directory?(path) && (valid.nil? || valid.call(path))
          # Between the two locks another process may get hold of it, but only to find it whole, or to remove it.
          lock.flock(File::LOCK_SH)
          return used(lock) if File.directory?(path)

          lock.close
        end
      end

      def used(lock)
        now = Time.now
        File.utime(now, now, lock.path)
        lock
      rescue SystemCallError
        lock
      end

      # A lock on a file that has been removed since it was opened keeps nobody out.
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

      # Gone at once for everybody, however long the removal takes.
      def discard(path)
        return unless File.exist?(path)

        away = Dir.mktmpdir("away-", session)
        File.rename(path, File.join(away, "it"))
        FileUtils.rm_rf(away)
      end

      # This process's folder in building/, made when it is first needed.
      def session
        @session ||= begin
          sweep
          name = File.join(@root, "building", "#{Process.pid}-#{rand(36**6).to_s(36)}")
          @session_lock = lock_file("#{name}.lock") { |file| file.flock(File::LOCK_EX) }
          Dir.mkdir(name, 0o700)
          name
        end
      end

      def sweep
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
        nil # another process was faster
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
        Dir[File.join(@root, "logs", "*.log")].each { |file| File.unlink(file) if Time.now - File.mtime(file) > LOG_AGE }
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
