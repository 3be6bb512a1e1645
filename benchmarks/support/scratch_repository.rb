# frozen_string_literal: true

require "fileutils"
require "open3"
require_relative "context"

module Benchmarks
  # A git repository that a benchmark makes.
  class ScratchRepository
    attr_reader :folder

    # @param folder [String] need not exist
    #: (String) -> void
    def initialize(folder)
      @folder = folder
      FileUtils.mkdir_p(folder)
      git("init", "-q")
    end

    # Writes files and commits them.
    # @param files [Hash{String => String}] path below the folder => text
    # @return [String] the commit's id
    #: (String, Hash[String, String]) -> String
    def commit(message, files)
      write(files)
      git("add", ".")
      git("-c", "user.name=nobody", "-c", "user.email=nobody@example.org", "commit", "-q", "-m", message)
      git("rev-parse", "HEAD").strip
    end

    #: (Hash[String, String]) -> void
    def write(files)
      files.each do |name, text|
        path = File.join(@folder, name)
        FileUtils.mkdir_p(File.dirname(path))
        File.write(path, text)
      end
    end

    # @return [String] what git printed
    # @raise [Context::Failure] it failed
    #: (*String) -> String
    def git(*words)
      output, status = Open3.capture2e("git", *words, chdir: @folder)
      raise Context::Failure, "git #{words.first} failed: #{output}" unless status.success?

      output
    end
  end
end
