# frozen_string_literal: true

require "pitwall"

# Tests that see system calls from inside, where kernel and processor let them.
module SyscallDispatch
  def skip_without_dispatch
    Pitwall.load_native!
    refusal = Pitwall::Native.syscall_dispatch
    skip "peer absent: syscall user dispatch (#{refusal})" if refusal
  end
end
