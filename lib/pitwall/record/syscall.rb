# frozen_string_literal: true

module Pitwall
  module Record
    # One system call. Absolute `path` where it could be resolved, as logged elsewhere; nil where the call has none.
    #
    # name: String, as the system calls it ("openat", "stat64") · path: String (any bytes) or nil · path2: the second one of rename, link… or nil
    # result: Integer (≥ 0; a descriptor, a byte count) or nil where unknown · errno: Integer, 0 fine, nil unknown · flags: Integer or nil
    # ns: duration, Integer or nil · at_ns: since the recording's start, or nil · pid, tid: Integers, 0 unknown
    # node: id of the stack in its segment, nil where there are none
    # cwd: working directory at the time or nil
    Syscall = Struct.new(:name, :path, :path2, :result, :errno, :flags, :ns, :at_ns, :pid, :tid, :node, :cwd, keyword_init: true)

    # One of a log that has names and paths only: answers as a Syscall does, and takes a tenth of its memory.
    # @api private
    BareSyscall = Struct.new(:path, :name) do
      # Such a log doesn't tell; nor the rest.
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
