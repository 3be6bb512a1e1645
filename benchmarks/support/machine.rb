# frozen_string_literal: true

require "etc"

module Benchmarks
  # What a reader has to know of the machine to judge a figure: its kind, never its name or its paths.
  module Machine
    #: () -> Hash
    def self.describe
      { ruby: RUBY_DESCRIPTION, cpu: cpu, cores: Etc.nprocessors, kernel: Etc.uname.values_at(:sysname, :release).join(" ") }
    end

    def self.cpu
      line = File.foreach("/proc/cpuinfo").find { |text| text.start_with?("model name") } if File.readable?("/proc/cpuinfo")
      line ? line.split(":", 2).last.strip : RbConfig::CONFIG["host_cpu"]
    end
    private_class_method :cpu
  end
end
