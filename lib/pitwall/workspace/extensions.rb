# frozen_string_literal: true

require "etc"
require "fileutils"
require "pitwall/workspace/failures"
require "pitwall/workspace/subprocess"

module Pitwall
  class Workspace
    # Compiles the extensions of a gem in its clone: with `rake compile` where the gem has that task, else as
    # `gem install` does.
    # @api private
    class Extensions
      NO_TASK = 93 # exit status of COMPILE without a task `compile`
      NO_RAKE = 94 # exit status of COMPILE when rake or the Rakefile can't be loaded
      # Ruby code that checks for the task and runs it, in one process: loading a Rakefile twice would be slow.
      COMPILE = <<~RUBY
        begin
          require "rake"
        rescue LoadError
          exit #{NO_RAKE}
        end
        rake = Rake.application
        rake.init("rake", ["compile"])
        begin
          rake.load_rakefile
        rescue LoadError, StandardError, SystemExit => error
          warn error.message
          exit #{NO_RAKE}
        end
        exit #{NO_TASK} unless Rake::Task.task_defined?("compile")
        begin
          rake.top_level
        rescue StandardError => error
          warn error.full_message(highlight: false), error.message.lines.first.to_s
          exit 1
        end
      RUBY
      LIST = <<~'RUBY'
        ARGV.each do |file|
          spec = Gem::Specification.load(file) or next
          library = spec.require_paths.find { |each| !each.start_with?("/") }
          spec.extensions.each { |path| puts [path, library].join("\t") }
        end
      RUBY
      private_constant :NO_TASK, :NO_RAKE, :COMPILE, :LIST

      # @param env [Hash] environment variables for loading the gem's code
      #: (Interpreter, BuildLog, env: Hash[String, String?]) -> void
      def initialize(interpreter, log, env:)
        @interpreter = interpreter
        @log = log
        @env = env
      end

      # Extensions that the gemspecs of a folder name: [folder, path of extconf.rb, folder of the compiled library].
      #: (String) -> Array[[String, String, String]]
      def named_in(folder)
        gemspecs = Dir.children(folder).grep(/\.gemspec\z/)
        gemspecs.select! { |name| File.read(File.join(folder, name)).b.include?("extensions") }
        return [] if gemspecs.empty?

        finished = Subprocess.capture([*@interpreter.words, "-e", LIST, *gemspecs.sort], dir: folder, env: @env)
        @log.note("== gemspec\n#{finished.err}") unless finished.err.empty?
        finished.out.lines(chomp: true).map { |line| [folder, *line.split("\t")] }
      end

      # Compiles the extensions that {#named_in} returns.
      # Raises BuildFailed.
      #: (Array[[String, String, String]]) -> void
      def compile(extensions)
        extensions.group_by(&:first).each do |folder, of_gem|
          next if rake(folder)

          of_gem.each { |_, path, library| make(folder, path, library || "lib") }
        end
      end

      private

      # Runs `rake compile`.
      # @return [Boolean] whether the gem has that task
      def rake(folder)
        rakefiles = %w[Rakefile rakefile Rakefile.rb rakefile.rb]
        return false if rakefiles.none? { |name| File.file?(File.join(folder, name)) }

        status = rake_compile(folder, ["-rbundler/setup"], @env) if @env["BUNDLE_GEMFILE"]
        # Second try without the bundle: not every bundle contains rake.
        status = rake_compile(folder, [], @env.merge("BUNDLE_GEMFILE" => nil)) if status.nil? || status == NO_RAKE
        @log.fail!("rake compile") unless [0, NO_TASK, NO_RAKE].include?(status)
        status.zero?
      end

      def rake_compile(folder, options, env)
        command = [*@interpreter.words, *options, "-e", COMPILE]
        @log.try("rake compile", command, dir: folder, env: env.merge("RUBYOPT" => nil)).exitstatus
      end

      def make(folder, path, library)
        unless File.basename(path) == "extconf.rb"
          @log.fail!("compile", "#{path}: neither an extconf.rb nor a `rake compile` that builds it")
        end

        inner = File.dirname(File.join(folder, path))
        library = File.join(folder, library)
        @log.run("#{path}", [*@interpreter.words, File.basename(path)], dir: inner, env: @env.merge("RUBYOPT" => nil))
        program = ENV.fetch("MAKE", "make")
        @log.run("make in #{File.dirname(path)}", [program, "-j#{Etc.nprocessors}"], dir: inner, env: @env)
        @log.run("make install in #{File.dirname(path)}",
                 [program, "install", "sitearchdir=#{library}", "sitelibdir=#{library}", "DESTDIR="],
                 dir: inner, env: @env)
      end
    end
  end
end
