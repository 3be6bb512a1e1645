# frozen_string_literal: true

require "pitwall/record/chunk"
require "pitwall/record/syscall"

module Pitwall
  module Record
    # The rows of one SYSC chunk, as parallel columns. The calls of a thread are in the order of their ends.
    # @api private
    class SyscallRows
      COLUMNS = %w[thread name at ns result errno flags node path path2 cwd].freeze
      private_constant :COLUMNS

      # @return [Integer] rows
      attr_reader :size

      #: (String) -> void
      def initialize(payload)
        columns = Columns.new(payload)
        @base_ns = columns.int
        @size = columns.int
        @threads, @names, @at, @ns, @results, @errnos, @flags, @nodes, @paths, @paths2, @cwds =
          COLUMNS.map { |name| columns.column(@size, name) }
      end

      # Highest ids named, of strings and of nodes; 0 for no rows.
      #: () -> Integer
      def highest_string = [@names, @paths, @paths2, @cwds].map { |ids| ids.max || 0 }.max

      #: () -> Integer
      def highest_node = @nodes.max || 0

      # @yield [Syscall] a lost string is LOST_NAME, a lost stack the root
      #: (Segment) { (Syscall) -> void } -> void
      def each(segment)
        pid = segment.header.pid || 0
        known = segment.parents.size
        @size.times do |at|
          node = @nodes[at]
          errno = @errnos[at]
          flags = @flags[at]
          yield Syscall.new(name: string(segment, @names[at]), path: path(segment, @paths[at]),
                            path2: path(segment, @paths2[at]), cwd: path(segment, @cwds[at]),
                            result: errno.zero? ? @results[at] : nil, errno: errno,
                            flags: flags.zero? ? nil : flags - 1, ns: @ns[at], at_ns: @base_ns + @at[at],
                            node: node < known ? node : 0, pid: pid, tid: segment.thread(@threads[at]).native_id)
        end
      end

      private

      def string(segment, id) = segment.strings[id] || LOST_NAME

      def path(segment, id) = id.zero? ? nil : string(segment, id)
    end
    private_constant :SyscallRows

    module Chunks
      # SYSC: system calls that returned, one row each. A recording may have millions, so rows are checked here and stay
      # in the file.
      class Syscalls < Chunk
        type "SYSC"

        def initialize(...)
          super
          @offsets = []
        end

        #: (String, Integer) -> void
        def read(payload, offset)
          rows = SyscallRows.new(payload)
          table(Strings).check(rows.highest_string)
          table(Nodes).check(rows.highest_node)
          @offsets << offset if rows.size.positive?
        end

        def settle(payload_at)
          offsets = @offsets
          return if offsets.empty?

          @source = lambda do |segment, &block|
            offsets.each { |offset| SyscallRows.new(payload_at.call(offset)).each(segment, &block) }
          end
        end

        def parts = { syscall_source: @source }
      end
    end

    class Segment
      # Has the file rows of system calls, or only totals?
      #: () -> bool
      def syscall_rows? = !@syscall_source.nil?

      # Reads the file once more and yields each system call, those of a thread in the order of their ends. Yields none
      # where calls were only counted.
      # @yield [Syscall] its stack: frame(node), parents[node], lines[node], as for samples
      # @raise [BadRecording] when the file was changed since
      #: () { (Syscall) -> void } -> void
      def each_syscall(&block)
        @syscall_source&.call(self, &block)
      end
    end
  end
end
