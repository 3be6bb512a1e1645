# frozen_string_literal: true

require "fileutils"
require "digest"
require "pitwall/workspace/failures"

module Pitwall
  class Workspace
    # The gems a Gemfile asks for, installed with the side's own Ruby into a folder that all sides with that Ruby share, and only there.
    # Gems that the Ruby has already are used where they are; the network is asked only for those that are nowhere.
    # @api private
    class Bundle
      NAMES = %w[Gemfile gems.rb].freeze
      STALE = 16 # what Bundler exits with when the lock file doesn't fit the Gemfile and mustn't be changed
      # Of the user's settings for a project, those that say what to install and how. The others say where.
      KEPT = /\ABUNDLE_(?:WITHOUT|WITH|ONLY|BUILD__\w+|MIRROR__\w+|FORCE_RUBY_PLATFORM):/.freeze
      # Says which gems were activated and which of them lie in the tree and have extensions.
      INVENTORY = <<~'RUBY'
        Gem.loaded_specs.each_value do |spec|
          puts "gem\t#{spec.full_gem_path}"
          library = spec.require_paths.find { |each| !each.start_with?("/") }
          spec.extensions.each { |path| puts ["extension", spec.full_gem_path, path, library].join("\t") }
        end
      RUBY
      private_constant :STALE, :KEPT, :INVENTORY

      # folders: of gems it needs · extensions: [folder of the gem, path of its extconf.rb, path its product goes to]
      Inventory = Struct.new(:folders, :extensions)

      # The Gemfile that holds for a folder, at or above it.
      #: (String, String) -> String?
      def self.find(dir, top)
        until (found = NAMES.map { |name| File.join(dir, name) }.find { |path| File.file?(path) })
          return if dir == top || dir == "/"

          dir = File.dirname(dir)
        end
        found
      end

      # A Gemfile's lock file.
      #: (String) -> String
      def self.lock_of(gemfile) = File.basename(gemfile) == "gems.rb" ? gemfile.sub(/\.rb\z/, ".locked") : "#{gemfile}.lock"

      # Lines of the user's settings for the project that hold for its clones too.
      #: (String) -> String
      def self.settings(gemfile)
        file = File.join(File.dirname(gemfile), ".bundle", "config")
        File.file?(file) ? File.read(file).lines.grep(KEPT).join : ""
      rescue SystemCallError
        ""
      end

      # Where the user's own bundle of a project is, as far as this Ruby can use it.
      #: (String, Interpreter, Hash[String, String]) -> String?
      def self.own_gems(gemfile, interpreter, environment)
        root = File.dirname(gemfile)
        config = File.join(root, ".bundle", "config")
        path = File.file?(config) && File.read(config)[/^BUNDLE_PATH: "?(.*?)"?$/, 1] || environment["BUNDLE_PATH"] || "vendor/bundle"
        folder = File.join(File.expand_path(path, root), interpreter.scope)
        folder if File.directory?(folder)
      rescue SystemCallError
        nil
      end

      # @param gemfile [String] absolute path
      # @param home [String] folder to install gems into
      # @param more_gems [Array<String>] further folders to look for gems in
      # @param config [String] folder of Bundler's settings for it
      # @param cache [String] folder for what Bundler downloads
      # @param base [Hash] variables of any program in that tree
      #: (gemfile: String, interpreter: Interpreter, home: String, config: String, cache: String,
      #:  ?more_gems: Array[String], ?base: Hash[String, String?]) -> void
      def initialize(gemfile:, interpreter:, home:, config:, cache:, more_gems: [], base: {})
        @gemfile = gemfile
        @interpreter = interpreter
        @home = home
        @config = config
        @cache = cache
        @more_gems = more_gems
        @base = base
      end

      # Installs what is missing.
      # @yield around an installation, which no two processes may do at once
      # Raises BuildFailed.
      #: (BuildLog) { () { () -> void } -> void } -> Inventory
      def prepare(log)
        log.fail!("bundle", "#{@interpreter.words.first} has no Bundler; --no-bundle does without") if @interpreter.bundler.empty?
        inventory(log) || begin
          yield -> { install(log) }
          inventory(log) || log.fail!("bundle install", "what it installed can't be loaded")
        end
      end

      # What a process needs to run with it.
      #: () -> Hash[String, String?]
      def environment
        @base.merge("BUNDLE_GEMFILE" => @gemfile, "BUNDLE_APP_CONFIG" => @config, "GEM_HOME" => @home,
                    "GEM_PATH" => [@home, *@more_gems, *@interpreter.gem_path].uniq.join(":"), "BUNDLER_VERSION" => @interpreter.bundler,
                    "BUNDLE_PATH" => nil, "BUNDLE_PATH__SYSTEM" => "true", "BUNDLE_DEPLOYMENT" => "false", "BUNDLE_FROZEN" => "false",
                    "BUNDLE_AUTO_INSTALL" => "false", "BUNDLE_DISABLE_VERSION_CHECK" => "true")
      end

      private

      # nil where a gem is missing. Resolves with what is installed, and writes the lock file of the clone.
      def inventory(log)
        log.step("checking its bundle")
        finished = Subprocess.capture([*@interpreter.words, "-rbundler/setup", "-e", INVENTORY],
                                      dir: File.dirname(@gemfile), env: environment.merge("RUBYOPT" => nil))
        unless finished.success?
          log.note("== bundler/setup\n#{finished.err}")
          return
        end

        rows = finished.out.lines(chomp: true).map { |line| line.split("\t") }
        root = "#{File.dirname(@gemfile)}/"
        Inventory.new(rows.filter_map { |kind, folder| folder if kind == "gem" && !"#{folder}/".start_with?(root) },
                      rows.filter_map { |kind, *extension| extension if kind == "extension" && "#{extension.first}/".start_with?(root) })
      end

      def install(log)
        frozen = File.file?(Bundle.lock_of(@gemfile))
        installed = [["--local"], []].any? do |options|
          status = bundle_install(log, options, frozen)
          status = bundle_install(log, options, frozen = false) if frozen && status == STALE
          status&.zero?
        end
        log.fail!("bundle install") unless installed
      end

      def bundle_install(log, options, frozen)
        variables = environment.merge("RUBYOPT" => nil, "BUNDLE_FROZEN" => frozen.to_s, "BUNDLE_USER_CACHE" => @cache,
                                      "BUNDLE_SILENCE_ROOT_WARNING" => "true", "BUNDLE_IGNORE_MESSAGES" => "true")
        command = @interpreter.gem_program("bundler", "bundle", "install", "--quiet", *options)
        log.try("bundle install", command, dir: File.dirname(@gemfile), env: variables).exitstatus
      end
    end
  end
end
