# frozen_string_literal: true

module Pitwall
  class Doctor
    # Files in which Linux tells about itself. Elsewhere there are none, and everything is nil.
    # @api private
    module ProcFile
      module_function

      #: (String) -> String?
      def read(path)
        File.read(path).strip
      rescue SystemCallError, IOError
        nil
      end

      # A line of /proc/self/status: `status("Seccomp")` → "0"
      #: (String) -> String?
      def status(name) = read("/proc/self/status")&.[](/^#{name}:\s*(.*)$/, 1)

      # Whether a signal is in one of the masks of /proc/self/status (SigBlk, SigIgn, SigCgt).
      #: (String, Integer) -> bool
      def signal?(mask, number) = status(mask).to_s.hex.anybits?(1 << (number - 1))
    end
  end
end
