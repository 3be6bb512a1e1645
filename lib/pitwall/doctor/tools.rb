# frozen_string_literal: true

require "tmpdir"
require "pitwall/doctor/check"
require "pitwall/launch/perf_recording"

module Pitwall
  class Doctor
    # Checks for programs that measure what Pitwall doesn't. None of them is required.
    # @api private
    module Tools
      USES = {
        "strace" => "system calls of any program",
        "perf" => "kernel functions below Ruby's (profile with perf)",
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
          next name == "perf" ? recording(path) : Check.of(name, :ok, path) if path

          Check.of(name, :note, "not installed",
                   meaning: "it would show #{use}", mend: "install the package #{PACKAGES.fetch(name, name)}")
        end
      end

      # Whether perf may record here.
      def recording(path)
        Dir.mktmpdir("pitwall-") do |folder|
          perf = Launch::PerfRecording.new(folder, period_ns: 1_000_000)
          perf.start
          perf.stop
        end
        Check.of("perf", :ok, "#{path}: records here")
      rescue Launch::PerfRecording::Refused => error
        why, mend = error.message.split(": ", 2)
        Check.of("perf", :note, "#{path}: #{why}", meaning: "no kernel functions below Ruby's",
                                                   mend: mend || "see what perf record says")
      rescue SystemCallError => error
        Check.of("perf", :note, "#{path}: was not tried (#{SystemCallError.new(error.errno).message})",
                 meaning: "it is not known whether it records here", mend: "set TMPDIR to a folder that can be written")
      end
      private_class_method :recording
    end
    private_constant :Tools
  end
end
