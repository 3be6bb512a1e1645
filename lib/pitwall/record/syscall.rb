# frozen_string_literal: true

module Pitwall
  module Record
    # One system call.
    #
    # name:     the system's name of the call ("openat", "stat64")
    # path:     String of any bytes, absolute where it could be resolved; nil where the call has none
    # path2:    the second path of rename, link…, or nil
    # result:   Integer from 0 on (a descriptor, a byte count); nil where unknown
    # errno:    Integer; 0 without error, nil where unknown
    # flags:    Integer or nil
    # ns:       duration, or nil
    # at_ns:    since the recording's start, or nil
    # pid, tid: Integers; 0 where unknown
    # node:     id of the stack in the segment; nil where there are no stacks
    # cwd:      working directory during the call, or nil
    Syscall = Struct.new(:name, :path, :path2, :result, :errno, :flags, :ns, :at_ns, :pid, :tid, :node, :cwd,
                         keyword_init: true)

    # A system call of a log that has names and paths only. It has the readers of a Syscall and takes a tenth of the
    # memory.
    # @api private
    BareSyscall = Struct.new(:path, :name) do
      # The log does not tell the second path, nor the other values below.
      #: () -> nil
      def path2 = nil
      %i[result errno flags ns at_ns node cwd].each { |name| alias_method name, :path2 }

      # Unknown.
      #: () -> Integer
      def pid = 0
      alias_method :tid, :pid
    end
  end
end
