# frozen_string_literal: true

require "fileutils"
require_relative "../../../script/checkout"
require_relative "run"

module Witness
  # The tests in the source archive of the running Ruby, unpacked into tmp/.
  class RubyArchive
    FILES = %w[thread thread_queue process signal fiber gc gc_compact settracefunc objectspace io array string proc]
            .map { |name| "test/ruby/test_#{name}.rb" }.push("test/fiber").freeze
    # Their tests under all ways take less than four minutes.
    SELECTION = %w[thread_queue signal settracefunc gc_compact proc].map { |name| "test/ruby/test_#{name}.rb" }
                  .push("test/fiber").freeze
    # Tests and specs of what the accelerator stands before: finding, compiling and loading files.
    LOADING = (
      %w[require require_lib autoload iseq rubyoptions settracefunc].map { |name| "test/ruby/test_#{name}.rb" } +
      %w[test/coverage test/rubygems/test_require.rb spec/ruby/library/coverage] +
      %w[core/kernel/require core/kernel/require_relative core/kernel/load core/kernel/autoload core/kernel/__dir__
         core/kernel/caller core/kernel/caller_locations core/kernel/warn core/module/autoload
         core/module/const_source_location core/proc/source_location core/method/source_location
         core/thread/backtrace/location/absolute_path core/thread/backtrace/location/path core/tracepoint/enable
         core/tracepoint/path language/file language/line language/predefined language/predefined/data language/BEGIN
         language/END language/magic_comment language/encoding command_line/dash_r command_line/frozen_strings
         command_line/dash_upper_i command_line/rubylib command_line/rubyopt command_line/error_message]
        .map { |name| "spec/ruby/#{name}_spec.rb" }
    ).freeze
    # Takes three minutes: each library in a process of its own.
    SLOW = %w[test/ruby/test_require_lib.rb].freeze
    # Which tests of a file run where minutes count.
    ABOUT_LOADING = {
      "test/ruby/test_iseq.rb" => "/binary|compile_file|file_encoding|builtin_load|inside_load|error_message/",
      "test/ruby/test_rubyoptions.rb" => "/require|include|search|rubyopt|warning|verbose|frozen|dir|able\\z|DATA|rflag/",
      "test/ruby/test_settracefunc.rb" => "/script_compiled|target|load/"
    }.freeze
    REPORTER = File.join(__dir__, "reporter.rb")
    SPEC_REPORTER = File.join(__dir__, "spec_reporter.rb")

    # What is unpacked.
    PARTS = %w[*/test */tool */lib */spec/mspec */spec/ruby].freeze

    SOURCES = ENV["PITWALL_RUBY_SOURCES"] || File.join(Checkout::ROOT, "../shared/sources")

    # What runs: each file, under which ways, and a pattern of its tests. All of the given files' tests.
    #: (Array[String], all: bool) -> Array[[String, Array[String], String?]]
    def self.chosen(files, all:)
      recorded, loading = all ? [FILES, LOADING] : [SELECTION, LOADING - SLOW]
      recorded, loading = (files - loading) | (files & FILES), files & LOADING if files.any?
      recorded.map { |file| [file, RECORDINGS, nil] } +
        loading.map { |file| [file, BOOTS.keys, files.empty? && !all ? ABOUT_LOADING[file] : nil] }
    end

    #: (?String) -> void
    def initialize(sources = SOURCES)
      @sources = File.expand_path(sources)
    end

    # Where they are unpacked.
    #: () -> String
    def folder = File.join(Checkout::ROOT, "tmp/ruby-tests/source-#{RUBY_VERSION}")

    # @return [String, nil] why the tests can't be had
    #: () -> String?
    def missing
      return if File.directory?(folder)

      archive = Dir[File.join(@sources, "ruby-#{RUBY_VERSION}.tar.{xz,gz}")].first
      return unpack(archive) if archive

      "no ruby-#{RUBY_VERSION}.tar.xz in #{@sources}: set PITWALL_RUBY_SOURCES to the folder that has it"
    end

    # @param tests [Array<String>, nil] "TestThread#test_join", or the description of a spec; all
    # @param only [String, nil] a pattern of names, if `tests` has none
    #: (String, ?Array[String]?, ?String?) -> Array[String]
    def command(file, tests = nil, only = nil)
      return spec_command(file, tests) if file.start_with?("spec/")

      only = "/\\A(?:#{tests.map { |test| Regexp.escape(test) }.join("|")})\\z/" if tests
      names = only ? ["-n", only] : []
      options = %w[-v --test-order=alpha --seed=1 --color=never --timeout-scale=4]
      [RbConfig.ruby, "test/runner.rb", *options, *names, REPORTER, file]
    end

    private

    # Of mspec's option -e: an example runs if its description contains the name.
    def spec_command(file, tests)
      names = (tests || []).flat_map { |test| ["-e", test.sub(/ \(\d+\)\z/, "")] }
      [RbConfig.ruby, "spec/mspec/bin/mspec-run", "-B", "spec/ruby/default.mspec", "-f", SPEC_REPORTER, *names, file]
    end

    # Into a folder of its own, which then gets the name: what is there under the name is whole.
    def unpack(archive)
      FileUtils.mkdir_p(fresh = "#{folder}.#{Process.pid}")
      done = system("tar", "-xf", archive, "-C", fresh, "--strip-components=1", "--wildcards",
                    "--no-wildcards-match-slash", *PARTS)
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
