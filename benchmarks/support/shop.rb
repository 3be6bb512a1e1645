# frozen_string_literal: true

require "tmpdir"
require "pitwall/launch/target_environment"
require_relative "clocks"
require_relative "context"

module Benchmarks
  # The Rails application in examples/shop, with the gems that script/demo installs for it.
  module Shop
    FOLDER = File.join(ROOT, "examples/shop")
    MISSING = "examples/shop has no gems installed (script/demo does that)"
    BOOTSTRAP = File.join(ROOT, "lib/pitwall/collect/bootstrap.rb")
    private_constant :BOOTSTRAP

    module_function

    # @param gemfile [String, nil] one of gemfiles/; nil: the application's own for this Ruby
    #: (?gemfile: String?) -> Hash[String, String?]
    def environment(gemfile: nil)
      { "BUNDLE_PATH" => File.join(ROOT, "vendor/shop"), "BUNDLE_APP_CONFIG" => File.join(ROOT, "tmp/shop-bundle"),
        "BUNDLE_GEMFILE" => gemfile, "RUBYOPT" => nil, "RUBYLIB" => nil, "BUNDLE_SILENCE_ROOT_WARNING" => "1",
        "SHOP_TMP" => File.join(ROOT, "tmp/shop") }
    end

    # Are the gems there?
    #: (?gemfile: String?) -> bool
    def prepared?(gemfile: nil)
      system(environment(gemfile: gemfile), RbConfig.ruby, File.join(FOLDER, "bin/bundle"), "check",
             out: File::NULL, err: File::NULL)
    end

    # Starts the application once: bin/rails runner 1.
    # @param settings [Hash, nil] of a recording, as TargetEnvironment takes them; nil: not recorded
    # @param under [Array<String>] the words of a command that runs it
    # @param err [IO, String] where standard error goes
    # @raise [Context::Failure] it failed
    #: (?Hash[Symbol, untyped]?, ?under: Array[String], ?err: IO | String) -> void
    def start(settings = nil, under: [], err: $stderr)
      Dir.mktmpdir("pitwall-boot") do |folder|
        recorded = settings ? recording(folder, settings) : {}
        words = [*under, RbConfig.ruby, File.join(FOLDER, "bin/rails"), "runner", "1"]
        unless system(environment.merge(recorded), *words, out: File::NULL, err: err)
          raise Context::Failure, "#{words.join(" ")} failed"
        end
      end
    end

    # The same, timed.
    # @return [Integer] CPU time of the process, ns: other programs change it less than wall time
    #: (?Hash[Symbol, untyped]?) -> Integer
    def cpu_of_start(settings = nil)
      before = Clocks.children_cpu_ns
      start(settings)
      Clocks.children_cpu_ns - before
    end

    def recording(folder, settings)
      Pitwall::Launch::TargetEnvironment.new(parts: folder, options: { mode: "none", **settings },
                                             bootstrap: BOOTSTRAP).to_h({})
    end
    private_class_method :recording
  end
end
