# frozen_string_literal: true

module Pitwall
  module Record
    class SyscallLog
      # Follows the paths of file descriptors and the working directory of each process through open, dup, close, chdir
      # and fork, as far as the log has these calls. A process that appears without a fork inherits from the process of
      # the line before, which is likely its parent.
      # @api private
      class Descriptors
        # Processes that are followed at a time.
        PROCESSES = 512
        # Descriptors that are followed in a process.
        MOST = 4096
        # A process.
        #
        # paths: descriptor → path
        # cwd:   working directory, or nil
        # real:  descriptor → the kernel's path, where that differs from the path
        Table = Struct.new(:paths, :cwd, :real)
        private_constant :PROCESSES, :MOST, :Table

        def initialize
          @tables = {}
          @pid = nil
        end

        # Declares that the next calls are of this process.
        #: (Integer) -> void
        def switch_to(pid)
          return if @pid == pid

          @table = @tables[pid] || store(pid, @table ? copy : Table.new({}, nil, {}))
          @pid = pid
        end

        #: (Integer) -> String?
        def path(descriptor) = @table.paths[descriptor]

        # The path that a descriptor was opened by. The log may have the kernel's path instead, in which links and
        # /proc/self are resolved.
        #: (Integer, String) -> String
        def opened_as(descriptor, real) = @table.real[descriptor] == real ? @table.paths.fetch(descriptor, real) : real

        #: () -> String?
        def cwd = @table.cwd

        # The absolute path, or the path as it is where the base is not known.
        # @param base [String, nil] the folder of the descriptor that the call names; by default the working directory
        #: (String, ?String?) -> String
        def absolute(path, base = @table.cwd)
          return path if base.nil? || path.getbyte(0) == 47
          return base if path.empty? || path == "."

          "#{base}/#{path.delete_prefix("./")}"
        end

        #: (Integer, String?, ?String?) -> void
        def opened(descriptor, path, real = nil)
          return closed(descriptor) if path.nil?

          real ? @table.real[descriptor] = real : @table.real.delete(descriptor)

          [@table.paths, @table.real].each(&:clear) if @table.paths.size > MOST
          @table.paths[descriptor] = path
        end

        #: (Integer) -> void
        def closed(descriptor)
          @table.paths.delete(descriptor)
          @table.real.delete(descriptor)
        end

        #: (String?) -> void
        def changed_directory(path) = path && @table.cwd = path

        # Declares a new process or thread of the current process.
        # @param shared [Boolean] whether the descriptors are shared, as by threads
        #: (Integer, ?shared: bool) -> void
        def created(pid, shared: false)
          return if @tables.key?(pid) && !shared

          store(pid, shared ? @table : copy)
        end

        #: (Integer) -> void
        def ended(pid)
          @tables.delete(pid)
          @pid = nil if @pid == pid
        end

        private

        def copy = Table.new(@table.paths.dup, @table.cwd, @table.real.dup)

        def store(pid, table)
          if @tables.size >= PROCESSES
            oldest = @tables.each_key.find { |key| key != @pid }
            @tables.delete(oldest)
          end
          @tables[pid] = table
        end
      end
    end
  end
end
