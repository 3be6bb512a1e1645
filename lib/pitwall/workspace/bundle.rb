# frozen_string_literal: true

require "fileutils"
require "digest"
require "pitwall/workspace/failures"

module Pitwall
  class Workspace
    # The gems of a Gemfile. They are installed with the side's Ruby into a folder of the cache, which all sides with
    # that Ruby share. Gems that the Ruby has already are used from their place. Only missing gems need the network.
    # @api private
    class Bundle
      NAMES = %w[Gemfile gems.rb].freeze
      STALE = 16 # Bundler's exit status when the lock file doesn't fit the Gemfile and is frozen
      # The user's settings that say what to install and how. Clones get these; the other settings say where.
      COPIED_SETTINGS = /\ABUNDLE_(?:WITHOUT|WITH|ONLY|BUILD__\w+|MIRROR__\w+|FORCE_RUBY_PLATFORM):/.freeze
      # Ruby code that lists the folders of all activated gems, and the gems' extensions.
      INVENTORY = <<~'RUBY'
        Gem.loaded_specs.each_value do |spec|
          puts "gem\t#{spec.full_gem_path}"
          library = spec.require_paths.find { |each| !each.start_with?("/") }
          spec.extensions.each { |path| puts ["extension", spec.full_gem_path, path, library].join("\t") }
        end
      RUBY
      private_constant :STALE, :COPIED_SETTINGS, :INVENTORY

      # folders:    folders of the bundle's gems outside of the clone
      # extensions: extensions of gems inside the clone: [gem's folder, path of extconf.rb, folder of the library]
      Inventory = Struct.new(:folders, :extensions)

      # The nearest Gemfile at or above a folder, up to the folder `top`; nil where there is none.
      #: (String, String) -> String?
      def self.find(dir, top)
        until (found = NAMES.map { |name| File.join(dir, name) }.find { |path| File.file?(path) })
          return if dir == top || dir == "/"

          dir = File.dirname(dir)
        end
        found
      end

      # Path of a Gemfile's lock file.
      #: (String) -> String
      def self.lock_of(gemfile)
        File.basename(gemfile) == "gems.rb" ? gemfile.sub(/\.rb\z/, ".locked") : "#{gemfile}.lock"
      end

      # Lines of the user's .bundle/config that clones get too.
      #: (String) -> String
      def self.settings(gemfile)
        file = File.join(File.dirname(gemfile), ".bundle", "config")
        File.file?(file) ? File.read(file).lines.grep(COPIED_SETTINGS).join : ""
      rescue SystemCallError
        ""
      end

      # The folder of the user's installed gems for a project and a Ruby; nil where there is none.
      #: (String, Interpreter, Hash[String, String]) -> String?
      def self.user_gems(gemfile, interpreter, environment)
        root = File.dirname(gemfile)
        config = File.join(root, ".bundle", "config")
        path = File.read(config)[/^BUNDLE_PATH: "?(.*?)"?$/, 1] if File.file?(config)
        path ||= environment["BUNDLE_PATH"] || "vendor/bundle"
        folder = File.join(File.expand_path(path, root), interpreter.scope)
        folder if File.directory?(folder)
      rescue SystemCallError
        nil
      end

      # @param gemfile [String] absolute path
      # @param home [String] folder to install gems into
      # @param more_gems [Array<String>] further folders to search for gems
      # @param config [String] folder of Bundler's settings (BUNDLE_APP_CONFIG)
      # @param cache [String] folder for Bundler's downloads
      # @param base [Hash] environment variables of all programs in the clone
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

      # Installs missing gems and returns the bundle's inventory.
      # @yield [Proc] the installation; the block calls it while it holds a lock against other processes
      # Raises BuildFailed.
      #: (BuildLog) { () { () -> void } -> void } -> Inventory
      def prepare(log)
        if @interpreter.bundler.empty?
          log.fail!("bundle", "#{@interpreter.words.first} has no Bundler; --no-bundle does without")
        end

        inventory(log) || begin
          yield -> { install(log) }
          inventory(log) || log.fail!("bundle install", "what it installed can't be loaded")
        end
      end

      # Environment variables of a process that uses the bundle; nil unsets a variable.
      #: () -> Hash[String, String?]
      def environment
        @base.merge("BUNDLE_GEMFILE" => @gemfile, "BUNDLE_APP_CONFIG" => @config, "GEM_HOME" => @home,
                    "GEM_PATH" => [@home, *@more_gems, *@interpreter.gem_path].uniq.join(":"),
                    "BUNDLER_VERSION" => @interpreter.bundler, "BUNDLE_PATH" => nil, "BUNDLE_PATH__SYSTEM" => "true",
                    "BUNDLE_DEPLOYMENT" => "false", "BUNDLE_FROZEN" => "false",
                    "BUNDLE_AUTO_INSTALL" => "false", "BUNDLE_DISABLE_VERSION_CHECK" => "true")
      end

      private

      # The inventory; nil where a gem is missing. Bundler resolves with the installed gems only, and writes the clone's
      # lock file.
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
        inside = ->(folder) { "#{folder}/".start_with?(root) }
        Inventory.new(rows.filter_map { |kind, folder| folder if kind == "gem" && !inside[folder] },
                      rows.filter_map { |kind, *rest| rest if kind == "extension" && inside[rest.first] })
      end

      # Installs first from local gems only, then with the network.
      # A lock file that doesn't fit the Gemfile may be changed at the second try.
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
