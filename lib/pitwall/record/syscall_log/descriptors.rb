# frozen_string_literal: true

module Pitwall
  module Record
    class SyscallLog
      # Which path a descriptor stands for, and where each process works, as far as the log tells: followed through open, dup, close,
      # chdir and new processes. One that first appears in the middle begins with what its likely parent had.
      # @api private
      class Descriptors
        # Processes followed at a time, descriptors each.
        PROCESSES = 512
        MOST = 4096
        # One process: descriptor → path; working directory or nil; descriptor → the path the kernel has for it, where that is another.
        Table = Struct.new(:paths, :cwd, :real)
        private_constant :PROCESSES, :MOST, :Table

        def initialize
          @tables = {}
          @pid = nil
        end

        # Calls that follow are of this process.
        #: (Integer) -> void
        def at(pid)
          return if @pid == pid

          @table = @tables[pid] || appear(pid)
          @pid = pid
        end

        #: (Integer) -> String?
        def path(descriptor) = @table.paths[descriptor]

        # The path a descriptor was opened by, where the log has only the kernel's: links and /proc/self resolved.
        #: (Integer, String) -> String
        def opened_as(descriptor, real) = @table.real[descriptor] == real ? @table.paths.fetch(descriptor, real) : real

        #: () -> String?
        def cwd = @table.cwd

        # Absolute where it can be known.
        # @param base [String, nil] the folder of the descriptor that the call names; without, the working directory
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
        def moved(path) = path && @table.cwd = path

        # A process the present one made; threads share its descriptors.
        #: (Integer, ?shared: bool) -> void
        def made(pid, shared: false)
          return if @tables.key?(pid) && !shared

          store(pid, shared ? @table : Table.new(@table.paths.dup, @table.cwd, @table.real.dup))
        end

        #: (Integer) -> void
        def ended(pid)
          @tables.delete(pid)
          @pid = nil if @pid == pid
        end

        private

        def appear(pid) = store(pid, @table ? Table.new(@table.paths.dup, @table.cwd, @table.real.dup) : Table.new({}, nil, {}))

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
