# frozen_string_literal: true

require "etc"
require "fileutils"
require "pitwall/workspace/failures"
require "pitwall/workspace/subprocess"

module Pitwall
  class Workspace
    # Compiles the extensions of a gem in its clone: by its own `rake compile` where it has that task, else as `gem install` would.
    # @api private
    class Extensions
      NO_TASK = 93
      NO_RAKE = 94
      # One process instead of two: loading a Rakefile takes its time.
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
          spec.extensions.each { |path| puts [path, spec.require_paths.find { |each| !each.start_with?("/") }].join("\t") }
        end
      RUBY
      private_constant :NO_TASK, :NO_RAKE, :COMPILE, :LIST

      # @param env [Hash] with which the gem's own code is loaded
      #: (Interpreter, BuildLog, env: Hash[String, String?]) -> void
      def initialize(interpreter, log, env:)
        @interpreter = interpreter
        @log = log
        @env = env
      end

      # Extensions that gemspecs in a folder name.
      #: (String) -> Array[[String, String, String]]
      def named_in(folder)
        gemspecs = Dir.children(folder).select { |name| name.end_with?(".gemspec") && File.read(File.join(folder, name)).b.include?("extensions") }
        return [] if gemspecs.empty?

        finished = Subprocess.capture([*@interpreter.words, "-e", LIST, *gemspecs.sort], dir: folder, env: @env)
        @log.note("== gemspec\n#{finished.err}") unless finished.err.empty?
        finished.out.lines(chomp: true).map { |line| [folder, *line.split("\t")] }
      end

      # Raises BuildFailed.
      #: (Array[[String, String, String]]) -> void
      def compile(extensions)
        extensions.group_by(&:first).each do |folder, of_gem|
          next if rake(folder)

          of_gem.each { |_, path, library| make(folder, path, library || "lib") }
        end
      end

      private

      def rake(folder)
        return false unless %w[Rakefile rakefile Rakefile.rb rakefile.rb].any? { |name| File.file?(File.join(folder, name)) }

        status = rake_compile(folder, ["-rbundler/setup"], @env) if @env["BUNDLE_GEMFILE"]
        # Not every bundle has rake in it.
        status = rake_compile(folder, [], @env.merge("BUNDLE_GEMFILE" => nil)) if status.nil? || status == NO_RAKE
        @log.fail!("rake compile") unless [0, NO_TASK, NO_RAKE].include?(status)
        status.zero?
      end

      def rake_compile(folder, options, env)
        @log.try("rake compile", [*@interpreter.words, *options, "-e", COMPILE], dir: folder, env: env.merge("RUBYOPT" => nil)).exitstatus
      end

      def make(folder, path, library)
        @log.fail!("compile", "#{path}: neither an extconf.rb nor a `rake compile` that builds it") unless File.basename(path) == "extconf.rb"

        inner = File.dirname(File.join(folder, path))
        library = File.join(folder, library)
        @log.run("#{path}", [*@interpreter.words, File.basename(path)], dir: inner, env: @env.merge("RUBYOPT" => nil))
        program = ENV.fetch("MAKE", "make")
        @log.run("make in #{File.dirname(path)}", [program, "-j#{Etc.nprocessors}"], dir: inner, env: @env)
        @log.run("make install in #{File.dirname(path)}", [program, "install", "sitearchdir=#{library}", "sitelibdir=#{library}", "DESTDIR="],
                 dir: inner, env: @env)
      end
    end
  end
end
