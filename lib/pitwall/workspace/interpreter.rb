# frozen_string_literal: true

require "pitwall/errors"
require "pitwall/workspace/subprocess"

module Pitwall
  class Workspace
    # A Ruby with its flags, its version and its folders.
    # @api private
    class Interpreter
      MARK = "pitwall-probe"
      # Ruby code that prints the interpreter's facts, in the syntax of old Rubies. --disable-gems leaves Gem undefined.
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
      # Flags that RUBYOPT takes. Other flags need a shell script that starts the Ruby with them.
      RUBYOPT_FLAG = /\A(?:-W(?::[\w-]+|\d)?|-[wdvU]|--(?:enable|disable)[=-][\w,=-]+
                       |--(?:y|r|z)?jit(?:-[\w-]+(?:=\S+)?)?)\z/x.freeze
      private_constant :MARK, :PROBE

      # @return [Array<String>] the program and its flags
      attr_reader :words
      # @return [String] "ruby 3.4.11 (…) +YJIT [x86_64-linux]"
      attr_reader :description
      # @return [Array<String>] folders that this Ruby searches for gems
      attr_reader :gem_path
      # @return [String] version of its Bundler; "" where it has none
      attr_reader :bundler
      # @return [String] key of compiled extensions, e.g. "ruby 3.1.0 x86_64-linux /usr/bin/ruby"
      attr_reader :abi
      # @return [String] "ruby/3.1.0": Bundler's folder for this Ruby, below BUNDLE_PATH
      attr_reader :scope

      # @param words [Array<String>] the program and its flags
      # @param env [Hash] environment variables of the probe
      # Raises UsageError when the program can't be run or is no Ruby.
      #: (Array[String], dir: String, ?env: Hash[String, String?]) -> void
      def initialize(words, dir:, env: {})
        @words = words
        finished = Subprocess.capture([*words, "-e", PROBE], dir: dir, env: env.merge("RUBYOPT" => nil))
        lines = finished.out.lines(chomp: true)
        start = lines.index(MARK)
        unless finished.success? && start
          refuse(finished.err.lines.map(&:strip).reject(&:empty?).first || "it isn't Ruby")
        end

        @description, engine, version, arch, program, @bundler, *@gem_path = lines.drop(start + 1)
        @scope = "#{engine}/#{version}"
        @abi = [engine, version, arch, program].join(" ")
        @bindir = File.dirname(program)
      rescue SystemCallError => error
        refuse(SystemCallError.new(error.errno).message)
      end

      # The command line that runs a gem's program with this Ruby, whatever is in PATH.
      #: (String, String, *String) -> Array[String]
      def gem_program(gem, name, *arguments)
        [*words, "-e", "load Gem.bin_path(ARGV.shift, ARGV.shift)", gem, name, *arguments]
      end

      # Whether RUBYOPT takes all of the flags.
      #: () -> bool
      def flags_fit_rubyopt? = words.drop(1).all?(RUBYOPT_FLAG)

      # The flags, without the program.
      #: () -> Array[String]
      def flags = words.drop(1)

      # Creates the command `ruby` in a folder for PATH, so that programs find this Ruby.
      # @param script [Boolean] whether the command is a shell script that adds the flags, else a link.
      #   A script takes about 1 ms to start, so all sides should have one, or none.
      #: (String, script: bool) -> void
      def create_command(folder, script:)
        path = File.join(folder, "ruby")
        return File.symlink(words.first, path) unless script

        quoted = words.map { |word| "'#{word.gsub("'", "'\\\\''")}'" }
        File.write(path, "#!/bin/sh\nexec #{quoted.join(" ")} \"$@\"\n")
        File.chmod(0o755, path)
      end

      # @return [String] folder of this Ruby's `bundle`, `gem` and `rake`
      attr_reader :bindir

      private

      def refuse(why)
        raise UsageError, "cannot run #{words.join(" ")}: #{why}; --ruby takes the path of a Ruby, " \
                          "or its name in PATH, and flags in the same quotes"
      end
    end
  end
end
