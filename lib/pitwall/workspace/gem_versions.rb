# frozen_string_literal: true

require "pitwall/workspace/build_log"
require "pitwall/workspace/store"

module Pitwall
  class Workspace
    # Versions of gems for code without a Gemfile. Missing versions are installed.
    # All versions are activated before other code is loaded.
    # @api private
    class GemVersions
      # Arguments that make a Ruby run its own `gem` command, whatever `gem` is in PATH.
      PROGRAM = ["-e", "require 'rubygems/gem_runner'; Gem::GemRunner.new.run(ARGV)", "--"].freeze
      private_constant :PROGRAM

      # @param dir [String] the working directory: `gem install` uses package files there
      # @param env [Hash] environment variables of `gem install`
      #: (Store, Interpreter, dir: String, env: Hash[String, String?], on_step: ^(String) -> void) -> void
      def initialize(store, interpreter, dir:, env:, on_step:)
        @store = store
        @interpreter = interpreter
        @dir = dir
        @env = env
        @on_step = on_step
      end

      # Installs missing gems.
      # @param gems [Hash] name → version
      # @return folders of the installed gems, and path of the file that activates all gems
      # Raises BuildFailed.
      #: (String, Hash[String, String]) -> [Array[String], String]
      def prepare(side, gems)
        missing = gems.reject { |name, version| installed?(name, version) }
        [missing.map { |name, version| install(side, name, version) }, activation(gems)]
      end

      private

      def installed?(name, version)
        @interpreter.gem_path.any? do |folder|
          Dir[File.join(folder, "specifications", "{,default/}#{name}-#{version}{,-*}.gemspec")].any?
        end
      end

      # Installs a gem with its dependencies into a folder of its own, so that the sides' gems don't affect each other.
      def install(side, name, version)
        key = Store.key("gem", @interpreter.abi, name, version)
        @store.fetch("sets", key) do |folder|
          log = BuildLog.new(side: side, path: @store.log(key), on_step: @on_step)
          words = ["install", name, "--version", version, "--install-dir", folder, "--no-document", "--no-user-install"]
          log.run("gem install #{name} -v #{version}", [*@interpreter.words, *PROGRAM, *words], dir: @dir, env: @env)
        end
      end

      def activation(gems)
        folder = @store.fetch("sets", Store.key("activation", gems)) do |made|
          lines = gems.map { |name, version| "gem #{name.inspect}, #{"= #{version}".inspect}\n" }
          File.write(File.join(made, "activate.rb"), lines.join)
        end
        File.join(folder, "activate.rb")
      end
    end
  end
end
