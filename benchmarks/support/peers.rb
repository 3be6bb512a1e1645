# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"

module Benchmarks
  # The peers' gems: installed below tmp/ when first needed, one bundle for each Ruby. They go on a measured process's
  # load path one at a time, so that no measured process loads Bundler or another peer.
  class Peers
    GEMFILE = File.expand_path("../Gemfile", __dir__)
    BUNDLES = File.expand_path("../../tmp/benchmarks-bundle", __dir__)
    PRINT_PATHS = "Bundler.load.specs.each { |s| puts [s.name, s.version, *s.full_require_paths].join(%q(\t)) }"
    private_constant :GEMFILE, :BUNDLES, :PRINT_PATHS

    Gem = Struct.new(:name, :version, :paths)

    def initialize(install: true, err: $stderr)
      @install = install
      @err = err
    end

    # Whether peers are wanted at all; those that aren't gems ask for it, too.
    def use? = @install

    # Why a peer cannot be used, or nil.
    #: (String) -> String?
    def missing(name)
      return "left out by --no-peers" unless @install
      return nil if gems.key?(name)

      @failure || "not available on #{RUBY_VERSION[/\d+\.\d+/]}"
    end

    def paths(name) = gems.fetch(name).paths
    def version(name) = gems.fetch(name).version

    private

    # Two processes may want them at once; what both would write is below BUNDLES.
    def gems
      @gems ||= list || begin
        FileUtils.mkdir_p(BUNDLES)
        File.open(File.join(BUNDLES, "lock"), File::RDWR | File::CREAT) do |lock|
          lock.flock(File::LOCK_EX)
          list || (install && list)
        end
      end || {}
    end

    def install
      @err.puts "benchmarks: installing the peers for Ruby #{RUBY_VERSION} (log: tmp/benchmarks-bundle/install.log)"
      output, status = bundle("install")
      File.write(File.join(BUNDLES, "install.log"), output)
      return true if status.success?

      @failure = "its gems do not install: see tmp/benchmarks-bundle/install.log"
      false
    end

    def list
      output, status = bundle("exec", RbConfig.ruby, "-e", PRINT_PATHS)
      return nil unless status.success?

      output.lines(chomp: true).map { |line| line.split("\t") }.select { |fields| fields.size > 2 }
            .to_h { |name, version, *paths| [name, Gem.new(name, version, paths)] }
    end

    # `bundle` is a package of its own on Debian; absent, the peers are absent.
    def bundle(*arguments)
      environment = { "BUNDLE_GEMFILE" => GEMFILE, "BUNDLE_PATH" => File.join(BUNDLES, tag), "BUNDLE_FROZEN" => "true",
                      "BUNDLE_SILENCE_ROOT_WARNING" => "true", "RUBYOPT" => nil, "RUBYLIB" => nil }
      Open3.capture2e(environment, RbConfig.ruby, "-S", "bundle", *arguments)
    end

    def tag = "#{RUBY_VERSION}-#{RbConfig::CONFIG["prefix"].delete_prefix("/").tr("/", "-")}"
  end
end
