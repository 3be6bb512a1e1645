# frozen_string_literal: true

require "pitwall/doctor/check"

module Pitwall
  class Doctor
    # Programs that look where Pitwall can't. None of them is needed.
    # @api private
    module Tools
      USES = {
        "strace" => "system calls of any program",
        "perf" => "kernel functions and hardware counters",
        "valgrind" => "exact instruction counts (callgrind)"
      }.freeze
      private_constant :USES

      module_function

      #: () -> Array[Check]
      def checks
        folders = ENV["PATH"].to_s.split(File::PATH_SEPARATOR)
        USES.map do |name, use|
          path = folders.map { |folder| File.join(folder, name) }.find { |file| File.file?(file) && File.executable?(file) }
          path ? Check.of(name, :ok, path) : Check.of(name, :note, "not installed", meaning: "it would show #{use}", mend: "install the package #{name == "perf" ? "linux-perf" : name}")
        end
      end
    end
    private_constant :Tools
  end
end
