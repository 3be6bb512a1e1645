# frozen_string_literal: true

require "pitwall/workspace/build_log"
require "pitwall/workspace/store"

module Pitwall
  class Workspace
    # Versions of gems for code that has no Gemfile: installed where its Ruby hasn't them, and activated before anything else is loaded.
    # @api private
    class GemVersions
      # As `gem` would, whatever PATH says.
      PROGRAM = ["-e", "require 'rubygems/gem_runner'; Gem::GemRunner.new.run(ARGV)", "--"].freeze
      private_constant :PROGRAM

      # @param dir [String] where the user is: `gem install` takes packages from there
      # @param env [Hash] with which to install
      #: (Store, Interpreter, dir: String, env: Hash[String, String?], on_step: ^(String) -> void) -> void
      def initialize(store, interpreter, dir:, env:, on_step:)
        @store = store
        @interpreter = interpreter
        @dir = dir
        @env = env
        @on_step = on_step
      end

      # Folders of gems, and the file that activates them.
      # @param gems [Hash] name → version
      # Raises BuildFailed.
      #: (String, Hash[String, String]) -> [Array[String], String]
      def prepare(side, gems)
        folders = gems.reject { |name, version| installed?(name, version) }.map { |name, version| install(side, name, version) }
        [folders, activation(gems)]
      end

      private

      def installed?(name, version)
        @interpreter.gem_path.any? { |folder| Dir[File.join(folder, "specifications", "{,default/}#{name}-#{version}{,-*}.gemspec")].any? }
      end

      # A folder for each, with all it depends on: what one side has installed is of no concern to the other.
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
          File.write(File.join(made, "activate.rb"), gems.map { |name, version| "gem #{name.inspect}, #{"= #{version}".inspect}\n" }.join)
        end
        File.join(folder, "activate.rb")
      end
    end
  end
end
