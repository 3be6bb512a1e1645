# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"

module Benchmarks
  # Compiles benchmarks/bare for the running Ruby, once, below tmp/.
  module BareBuild
    SOURCE = File.expand_path("../bare", __dir__)
    RUBY_NAME = "#{RUBY_VERSION}#{RbConfig::CONFIG["prefix"].tr("/", "-")}"
    TARGET = File.expand_path("../../tmp/benchmarks/bare-#{RUBY_NAME}", __dir__)
    LIBRARY = File.join(TARGET, "bare.#{RbConfig::CONFIG["DLEXT"]}")

    module_function

    # Returns why it could not be built, or nil.
    #: () -> String?
    def failure
      return @failure if defined?(@failure)

      @failure = fresh? || build ? nil : "it does not compile: see tmp/benchmarks/#{File.basename(TARGET)}/build.log"
    end

    def fresh?
      return false unless File.exist?(LIBRARY)

      Dir[File.join(SOURCE, "*")].all? { |file| File.mtime(file) <= File.mtime(LIBRARY) }
    end

    def build
      FileUtils.mkdir_p(TARGET)
      commands = [[RbConfig.ruby, File.join(SOURCE, "extconf.rb")], ["make"]]
      steps = commands.map { |command| Open3.capture2e(*command, chdir: TARGET) }
      File.write(File.join(TARGET, "build.log"), steps.map(&:first).join)
      steps.last.last.success?
    rescue Errno::ENOENT # no make
      false
    end
  end
end
