# frozen_string_literal: true

require "fileutils"
require_relative "../../../script/checkout"

module Witness
  # The tests in the source archive of the running Ruby, unpacked into tmp/.
  class RubyArchive
    FILES = %w[thread thread_queue process signal fiber gc gc_compact settracefunc objectspace io array string proc]
            .map { |name| "test/ruby/test_#{name}.rb" }.push("test/fiber").freeze
    # Their tests under all ways take less than four minutes.
    SELECTION = %w[thread_queue signal settracefunc gc_compact proc].map { |name| "test/ruby/test_#{name}.rb" }
                  .push("test/fiber").freeze
    REPORTER = File.join(__dir__, "reporter.rb")

    SOURCES = ENV["PITWALL_RUBY_SOURCES"] || File.join(Checkout::ROOT, "../shared/sources")

    #: (?String) -> void
    def initialize(sources = SOURCES)
      @sources = File.expand_path(sources)
    end

    # Where they are unpacked.
    #: () -> String
    def folder = File.join(Checkout::ROOT, "tmp/ruby-tests/ruby-#{RUBY_VERSION}")

    # @return [String, nil] why the tests can't be had
    #: () -> String?
    def missing
      return if File.directory?(folder)

      archive = Dir[File.join(@sources, "ruby-#{RUBY_VERSION}.tar.{xz,gz}")].first
      return unpack(archive) if archive

      "no ruby-#{RUBY_VERSION}.tar.xz in #{@sources}: set PITWALL_RUBY_SOURCES to the folder that has it"
    end

    # @param tests [Array<String>, nil] "TestThread#test_join"; all
    #: (String, ?Array[String]?) -> Array[String]
    def command(file, tests = nil)
      names = tests ? ["-n", "/\\A(?:#{tests.map { |test| Regexp.escape(test) }.join("|")})\\z/"] : []
      options = %w[-v --test-order=alpha --seed=1 --color=never --timeout-scale=4]
      [RbConfig.ruby, "test/runner.rb", *options, *names, REPORTER, file]
    end

    private

    # Into a folder of its own, which then gets the name: what is there under the name is whole.
    def unpack(archive)
      FileUtils.mkdir_p(fresh = "#{folder}.#{Process.pid}")
      done = system("tar", "-xf", archive, "-C", fresh, "--strip-components=1", "--wildcards", "*/test", "*/tool")
      return "#{archive} can't be unpacked: is xz installed?" unless done

      File.rename(fresh, folder)
      nil
    rescue Errno::ENOTEMPTY, Errno::EEXIST
      nil # another process was faster
    ensure
      FileUtils.rm_rf(fresh)
    end
  end
end
