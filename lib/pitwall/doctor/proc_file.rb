# frozen_string_literal: true

module Pitwall
  class Doctor
    # Reads files of /proc and /sys. On other systems than Linux these files don't exist.
    # @api private
    module ProcFile
      module_function

      # The stripped content of a file; nil where it can't be read.
      #: (String) -> String?
      def read(path)
        File.read(path).strip
      rescue SystemCallError, IOError
        nil
      end

      # A value of /proc/self/status, e.g. `status("Seccomp")` → "0"; nil where it is missing.
      #: (String) -> String?
      def status(name) = read("/proc/self/status")&.[](/^#{name}:\s*(.*)$/, 1)

      # Whether a signal is in a mask of /proc/self/status: "SigBlk", "SigIgn" or "SigCgt".
      #: (String, Integer) -> bool
      def signal?(mask, number) = status(mask).to_s.hex.anybits?(1 << (number - 1))
    end
  end
end
