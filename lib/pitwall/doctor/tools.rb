# frozen_string_literal: true

require "pitwall/doctor/check"

module Pitwall
  class Doctor
    # Checks for programs that measure what Pitwall doesn't. None of them is required.
    # @api private
    module Tools
      USES = {
        "strace" => "system calls of any program",
        "perf" => "kernel functions and hardware counters",
        "valgrind" => "exact instruction counts (callgrind)",
        "c++filt" => "names of native functions of C++ and Rust as their source has them"
      }.freeze
      # Packages that are not called as the program.
      PACKAGES = { "perf" => "linux-perf", "c++filt" => "binutils" }.freeze
      private_constant :USES, :PACKAGES

      module_function

      # Whether each program is installed.
      #: () -> Array[Check]
      def checks
        folders = ENV["PATH"].to_s.split(File::PATH_SEPARATOR)
        USES.map do |name, use|
          candidates = folders.map { |folder| File.join(folder, name) }
          path = candidates.find { |file| File.file?(file) && File.executable?(file) }
          next Check.of(name, :ok, path) if path

          Check.of(name, :note, "not installed",
                   meaning: "it would show #{use}", mend: "install the package #{PACKAGES.fetch(name, name)}")
        end
      end
    end
    private_constant :Tools
  end
end
