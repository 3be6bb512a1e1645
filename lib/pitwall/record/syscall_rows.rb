# frozen_string_literal: true

require "pitwall/record/columns"
require "pitwall/record/syscall"

module Pitwall
  module Record
    # How a process's system calls were seen. `lost`: rows for which there was no room (they are in the totals); `refused_threads`: threads whose
    # calls could not be seen; `stopped_by`: :seccomp or :dispatch when the program itself asked the kernel for something that
    # ended it; `stepped_back`: calls may be missing right after a thread or process was started.
    SyscallFacts = Struct.new(:lost, :refused_threads, :stopped_by, :stepped_back, keyword_init: true) do
      # @api private
      #: (Integer, Integer, Integer) -> SyscallFacts
      def self.of(flags, lost, refused)
        new(lost: lost, refused_threads: refused, stopped_by: flags.anybits?(1) ? :seccomp : (flags.anybits?(2) ? :dispatch : nil), stepped_back: flags.anybits?(4))
      end

      # What is missing, for people; empty when nothing is.
      #: () -> Array[String]
      def words
        words = []
        words << "#{lost} system calls are in the totals only: the disk or the machine was too busy for their rows" if lost.positive?
        words << "system calls of #{refused_threads} threads were not seen: the kernel refused to dispatch them" if refused_threads.positive?
        words << "it set a seccomp filter: its system calls are seen up to there only" if stopped_by == :seccomp
        words << "it asked for syscall user dispatch itself: its system calls are seen up to there only" if stopped_by == :dispatch
        words << "system calls right after a thread or process was started may be missing" if stepped_back
        words
      end
    end

    # One `SYSC` chunk, decoded: parallel columns, the calls of a thread in the order of their ends.
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
        @threads, @names, @at, @ns, @results, @errnos, @flags, @nodes, @paths, @paths2, @cwds = COLUMNS.map { |name| columns.column(@size, name) }
      end

      # Highest ids named, of strings and of nodes; 0 for no rows.
      #: () -> Integer
      def highest_string = [@names, @paths, @paths2, @cwds].map { |ids| ids.max || 0 }.max

      #: () -> Integer
      def highest_node = @nodes.max || 0

      # @yield [Syscall] with what the segment's tables have; what salvage lost is called so, and its stack is the root
      #: (Segment) { (Syscall) -> void } -> void
      def each(segment)
        pid = segment.header.pid || 0
        known = segment.parents.size
        @size.times do |at|
          node = @nodes[at]
          errno = @errnos[at]
          flags = @flags[at]
          yield Syscall.new(name: string(segment, @names[at]), path: path(segment, @paths[at]), path2: path(segment, @paths2[at]),
                            result: errno.zero? ? @results[at] : nil, errno: errno, flags: flags.zero? ? nil : flags - 1, ns: @ns[at], at_ns: @base_ns + @at[at],
                            pid: pid, tid: segment.thread(@threads[at]).native_id, node: node < known ? node : 0, cwd: path(segment, @cwds[at]))
        end
      end

      private

      def string(segment, id) = segment.strings[id] || "(lost name)"

      def path(segment, id) = id.zero? ? nil : string(segment, id)
    end
    private_constant :SyscallRows
  end
end
