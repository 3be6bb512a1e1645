# frozen_string_literal: true

require "fileutils"
require "open3"
require_relative "shop"

module Benchmarks
  # The gems of examples/shop, and bootsnap. They are installed where the shop's gems are, in the versions of its lock.
  class BootsnapBundle
    VERSION = "1.26.1"
    FOLDER = File.join(ROOT, "tmp/benchmarks-bundle/shop")
    # Tests install the shop's gems, too (test/support/database_program.rb).
    LOCK = File.join(ROOT, "tmp/shop-bundle.lock")
    private_constant :VERSION, :FOLDER, :LOCK

    # @return [String] the Gemfile, which `missing` writes
    attr_reader :gemfile

    # @param install [bool] whether gems may be installed
    #: (install: bool, err: IO) -> void
    def initialize(install:, err:)
      @install = install
      @err = err
      @gemfile = File.join(FOLDER, File.basename(shops, ".gemfile"), "Gemfile")
    end

    # Installs what is missing.
    # @return [String, nil] why it can't be used
    #: () -> String?
    def missing
      FileUtils.mkdir_p(FOLDER)
      File.open(LOCK, File::RDWR | File::CREAT) do |lock|
        lock.flock(File::LOCK_EX)
        write
        next if bundle("check").last.success?
        next "bootsnap is not installed for examples/shop (#{by_hand})" unless @install

        install
      end
    end

    private

    # The shop's Gemfile for this Ruby, as its boot.rb chooses it.
    def shops
      @shops ||= begin
        words = [RbConfig.ruby, "-r", File.join(Shop::FOLDER, "boot"), "-e", "print ENV.fetch('BUNDLE_GEMFILE')"]
        output, status = Open3.capture2(Shop.environment, *words)
        raise Context::Failure, "#{words.join(" ")} failed" unless status.success?

        output
      end
    end

    # Bundler adds bootsnap to a copy of the shop's lock.
    def write
      lock = "#{@gemfile}.lock"
      return if File.file?(@gemfile) && FileUtils.uptodate?(lock, ["#{shops}.lock", __FILE__])

      FileUtils.mkdir_p(File.dirname(@gemfile))
      File.write(@gemfile, "eval_gemfile #{shops.dump}\ngem \"bootsnap\", \"#{VERSION}\", require: false\n")
      FileUtils.cp("#{shops}.lock", lock)
    end

    def install
      @err.puts "benchmarks: installing bootsnap and the gems of examples/shop for Ruby #{RUBY_VERSION}"
      output, status = bundle("install")
      return if status.success?

      File.write(File.join(FOLDER, "install.log"), output)
      "bootsnap does not install for examples/shop: see tmp/benchmarks-bundle/shop/install.log (#{by_hand})"
    end

    def by_hand
      path = [@gemfile, File.join(ROOT, "vendor/shop")].map { |name| name.delete_prefix("#{ROOT}/") }
      "by hand: BUNDLE_GEMFILE=#{path[0]} BUNDLE_PATH=$PWD/#{path[1]} bundle install"
    end

    def bundle(word)
      Open3.capture2e(Shop.environment(gemfile: @gemfile), RbConfig.ruby, File.join(Shop::FOLDER, "bin/bundle"), word)
    end
  end
end
