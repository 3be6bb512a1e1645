# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/workspace/subprocess"

module Pitwall
  class Workspace
    # A Ruby with its flags, and what it says of itself.
    # @api private
    class Interpreter
      MARK = "pitwall-probe"
      # In the syntax of old Rubies. With --disable-gems there are no gems to ask about.
      PROBE = <<~'RUBY'
        require "rbconfig"
        c = RbConfig::CONFIG
        paths, bundler = [], ""
        if defined?(Gem)
          paths = Gem.path
          begin
            require "bundler/version"
            bundler = Bundler::VERSION
          rescue LoadError
          end
        end
        program = File.join(c["bindir"], c["ruby_install_name"])
        puts "pitwall-probe", RUBY_DESCRIPTION, RUBY_ENGINE, c["ruby_version"], c["arch"], program, bundler, paths
      RUBY
      # Flags that RUBYOPT takes; others need a script that starts this Ruby with them.
      RUBYOPT_FLAG = /\A(?:-W(?::[\w-]+|\d)?|-[wdvU]|--(?:enable|disable)[=-][\w,=-]+|--(?:y|r|z)?jit(?:-[\w-]+(?:=\S+)?)?)\z/.freeze
      private_constant :MARK, :PROBE

      # @return [Array<String>] the program and its flags
      attr_reader :words
      # @return [String] "ruby 3.4.11 (…) +YJIT [x86_64-linux]"
      attr_reader :description
      # @return [Array<String>] where it looks for gems
      attr_reader :gem_path
      # @return [String] version of its Bundler; "" where it has none
      attr_reader :bundler
      # @return [String] what gems with extensions are compiled for
      attr_reader :abi
      # @return [String] "ruby/3.1.0": the folder below which Bundler keeps its gems
      attr_reader :scope

      # @param env [Hash] what it runs with, later too
      # Raises UsageError when it doesn't run.
      #: (Array[String], dir: String, ?env: Hash[String, String?]) -> void
      def initialize(words, dir:, env: {})
        @words = words
        finished = Subprocess.capture([*words, "-e", PROBE], dir: dir, env: env.merge("RUBYOPT" => nil))
        lines = finished.out.lines(chomp: true)
        start = lines.index(MARK)
        refuse(finished.err.lines.map(&:strip).reject(&:empty?).first || "it isn't Ruby") unless finished.success? && start
        @description, engine, version, arch, program, @bundler, *@gem_path = lines.drop(start + 1)
        @scope = "#{engine}/#{version}"
        @abi = [engine, version, arch, program].join(" ")
        @bindir = File.dirname(program)
      rescue SystemCallError => error
        refuse(SystemCallError.new(error.errno).message)
      end

      # A program of a gem, run by this Ruby whatever PATH says.
      #: (String, String, *String) -> Array[String]
      def gem_program(gem, name, *arguments) = [*words, "-e", "load Gem.bin_path(ARGV.shift, ARGV.shift)", gem, name, *arguments]

      # Whether RUBYOPT can give the flags.
      #: () -> bool
      def plain? = words.drop(1).all?(RUBYOPT_FLAG)

      # The flags, for RUBYOPT.
      #: () -> Array[String]
      def flags = words.drop(1)

      # Fills a folder that, first in PATH, makes this Ruby the one that `ruby` and scripts get.
      # @param script [Boolean] whether by a script that gives the flags; it takes a millisecond, so all sides should have one
      #: (String, script: bool) -> void
      def stand_in(folder, script:)
        path = File.join(folder, "ruby")
        return File.symlink(words.first, path) unless script

        quoted = words.map { |word| "'#{word.gsub("'", "'\\\\''")}'" }
        File.write(path, "#!/bin/sh\nexec #{quoted.join(" ")} \"$@\"\n")
        File.chmod(0o755, path)
      end

      # @return [String] where its own `bundle`, `gem` and `rake` are
      attr_reader :bindir

      private

      def refuse(why)
        raise UsageError, "cannot run #{words.join(" ")}: #{why}; --ruby takes the path of a Ruby, or its name in PATH, and flags in the same quotes"
      end
    end
  end
end
