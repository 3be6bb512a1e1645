# frozen_string_literal: true

require "etc"

module Benchmarks
  # What a reader has to know of the machine to judge a figure: its kind, never its name or its paths.
  module Machine
    #: () -> Hash
    def self.describe
      { ruby: RUBY_DESCRIPTION, cpu: cpu, cores: Etc.nprocessors,
        kernel: Etc.uname.values_at(:sysname, :release).join(" ") }
    end

    def self.cpu
      file = "/proc/cpuinfo"
      line = File.foreach(file).find { |text| text.start_with?("model name") } if File.readable?(file)
      line ? line.split(":", 2).last.strip : RbConfig::CONFIG["host_cpu"]
    end
    private_class_method :cpu
  end
end
