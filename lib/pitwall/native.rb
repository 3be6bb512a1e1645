# frozen_string_literal: true

require "rbconfig" # not loaded under --disable-gems

module Pitwall
  # Finds and loads the C extension for the running Ruby.
  #
  # An installed gem has it on the load path as `pitwall/pitwall`. A checkout has one build for each Ruby below
  # `lib/pitwall/native/TAG/`, so that several Rubies can share the tree. This file uses core Ruby only: it is loaded
  # into programs that have not chosen their gems yet.
  module NativeLoader
    # The name of the running Ruby's build: its version, platform and prefix ("3.4.1-x86_64-linux-_usr_local").
    #: () -> String
    def self.tag
      "#{RUBY_VERSION}-#{RUBY_PLATFORM}-#{RbConfig::CONFIG["prefix"].tr("/", "_")}"
    end

    # Absolute paths to try, the best first. `name` is the extension's, "pitwall" or "fastboot_pack".
    #: (?String) -> Array[String]
    def self.candidates(name = "pitwall")
      here = File.expand_path("..", __FILE__)
      abi = RbConfig::CONFIG["ruby_version"]
      platform = RUBY_PLATFORM
      root = File.expand_path("../..", here) # GEM_HOME/gems/pitwall-core-VERSION
      gem_dir = File.basename(root)
      found = [File.join(here, "native", tag, "#{name}.so")]
      # The gem that is installed for this Ruby, then gems of the same version that are installed
      # elsewhere for this ABI.
      homes = [File.expand_path("../..", root)]
      homes.concat(Gem.path) if defined?(Gem) && Gem.respond_to?(:path)
      homes.uniq.each do |home|
        [gem_dir, "pitwall-core-#{VERSION}"].uniq.each do |gem|
          [platform, platform.sub(/-gnu\z/, "")].uniq.each do |arch|
            [abi, "#{abi}-static"].each do |each|
              found << File.join(home, "extensions", arch, each, gem, "pitwall", "#{name}.so")
            end
          end
        end
      end
      found
    end

    # The path of the program that starts measured commands (ext/pitwall/launcher). It lies beside the extension.
    #: () -> String?
    def self.launcher
      beside = candidates.map { |file| File.join(File.dirname(file), "pitwall-launch") }
      beside.concat($LOAD_PATH.map { |dir| File.join(dir.to_s, "pitwall", "pitwall-launch") })
      beside.find { |file| File.executable?(file) }
    end

    # Loads the extension, once.
    # @raise [CannotMeasure] there is no build for this Ruby
    def self.load!
      return if defined?(Pitwall::Native)

      path = candidates.find { |file| File.file?(file) }
      return require(path) if path

      begin
        require "pitwall/pitwall"
      rescue LoadError
        raise CannotMeasure, "pitwall-core has no extension for ruby #{RUBY_VERSION} (#{RUBY_PLATFORM}): " \
                             "run `gem install pitwall-core` with that Ruby, or script/setup in a checkout"
      end
    end
  end
  private_constant :NativeLoader

  # @api private
  def self.load_native! = NativeLoader.load!

  # @api private
  def self.launcher = NativeLoader.launcher
end
