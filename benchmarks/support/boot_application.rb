# frozen_string_literal: true

require "fileutils"
require_relative "clocks"
require_relative "context"

module Benchmarks
  # A Rails application that is started with one accelerator or another. Its own files stay as they are, and the caches
  # are in a folder of the benchmark.
  class BootApplication
    WITH = File.expand_path("boot_with.rb", __dir__)
    RUNNER = %w[bin/rails runner 1].freeze
    CONSOLE = %w[bin/rails console].freeze # its input is at its end
    RUBOCOP = %w[bin/rubocop --cache false --fail-level fatal config/boot.rb].freeze
    # Variables that would change what a way means.
    UNSET = %w[RUBYLIB BOOTSNAP_CACHE_DIR BOOTSNAP_READONLY PITWALL_FASTBOOT PITWALL_FASTBOOT_GC PITWALL_FASTBOOT_LAZY
               PITWALL_FASTBOOT_PREFAULT PITWALL_FASTBOOT_ZONEINFO PITWALL_BOOT_CACHE PITWALL_BOOT_CACHE_READONLY
               BENCHMARKS_BOOT SHOP_EAGER_LOAD].to_h { |name| [name, nil] }.freeze
    # Spring would keep the application. If the lockfile names another version of Bundler, Bundler would start the
    # command a second time.
    ONE_START = { "DISABLE_SPRING" => "1", "BUNDLE_VERSION" => "system" }.freeze
    private_constant :WITH, :CONSOLE, :RUBOCOP, :UNSET, :ONE_START

    # @param folder [String] with a Gemfile and bin/rails
    # @return [Array<BootApplication>] the application in each environment that RAILS_ENV lists ("production,test"; else
    #   in development)
    # @raise [Context::Failure] it has none
    #: (String) -> Array[BootApplication]
    def self.all_at(folder)
      environments = ENV.fetch("RAILS_ENV", "development").split(",")
      environments.map { |environment| at(folder, environment, several: environments.size > 1) }
    end

    # @param several whether the name of the environment is a part of the application's
    # @raise [Context::Failure] the folder has no application
    #: (String, ?String, ?several: bool) -> BootApplication
    def self.at(folder, environment = "development", several: false)
      missing = %w[Gemfile bin/rails].find { |name| !File.file?(File.join(folder, name)) }
      raise Context::Failure, "PITWALL_BOOT_APPS: #{folder} has no #{missing}" if missing

      bundle = File.join(folder, "vendor/bundle")
      new("#{File.basename(folder)}#{" in #{environment}" if several}", folder,
          { "BUNDLE_GEMFILE" => File.join(folder, "Gemfile"), "RAILS_ENV" => environment,
            **(File.directory?(bundle) ? { "BUNDLE_PATH" => bundle } : {}) })
    end

    # @return [String] what tables call it
    attr_reader :name

    # @param environment [Hash{String => String?}] what all its starts need
    #: (String, String, Hash[String, String?]) -> void
    def initialize(name, folder, environment)
      @name = name
      @folder = folder
      @environment = environment
    end

    # @param all [bool] not only the runner: a list of tasks, a console until its prompt, and (if the application has
    #   them) a test file, RuboCop of one file
    #: (bool) -> Array[Array[String]]
    def commands(all)
      return [RUNNER] unless all

      test = Dir.glob("test/**/*_test.rb", base: @folder).min
      [RUNNER, [has?("bin/rake") ? "bin/rake" : "bin/rails", "-T"], CONSOLE,
       *([["bin/rails", "test", test]] if test), *([RUBOCOP] if has?(RUBOCOP.first))]
    end

    # Starts a command of it, and waits for its end.
    # @param words [Array<String>] one of `commands`
    # @param environment [Hash{String => String?}] of the way of starting
    # @param under [Array<String>] a command that runs it
    # @return [Hash] wall_ns, cpu_ns, peak_kb (kB), features (their number)
    # @raise [Context::Failure] it failed
    #: (Array[String], Hash[String, String?], ?under: Array[String]) -> Hash[Symbol, Integer]
    def start(words, environment, under: [])
      reader, writer = IO.pipe
      errors, error_writer = IO.pipe
      environment = whole_environment(words, environment, writer)
      cpu = Clocks.children_cpu_ns
      spent = Clocks.spent do
        pid = spawn(environment, *under, RbConfig.ruby, *words, chdir: @folder, writer => writer, in: File::NULL,
                                                                out: File::NULL, err: error_writer)
        [writer, error_writer].each(&:close)
        @errors = errors.read
        Process.wait(pid)
      end
      features, peak_kb = reader.read.split.map { |text| Integer(text) }
      fail_with(words) unless $?.success? && peak_kb

      { wall_ns: spent[:wall_ns], cpu_ns: Clocks.children_cpu_ns - cpu, peak_kb: peak_kb, features: features }
    ensure
      [reader, writer, errors, error_writer].each { |io| io&.close }
    end

    private

    def has?(file) = File.file?(File.join(@folder, file))

    def whole_environment(words, environment, writer)
      all = { **UNSET, **@environment, **environment, **ONE_START, "RUBYOPT" => "-r#{WITH}",
              "BENCHMARKS_RSS_FD" => writer.fileno.to_s }
      words[1] == "test" ? { **all, "RAILS_ENV" => "test" } : all
    end

    def fail_with(words)
      reason = @errors.lines.map(&:strip).reject(&:empty?).first || $?.to_s.sub(/\Apid \d+ /, "")
      raise Context::Failure, "#{words.join(" ")} failed: #{reason}"
    end
  end
end
