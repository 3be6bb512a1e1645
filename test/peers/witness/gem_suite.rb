# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "rubygems/remote_fetcher"
require "yaml"
require_relative "../../../script/checkout"

module Witness
  # A gem's own tests (gem_suites.yml): its source in tmp/gem-suites/, with its extension built and the gems that it asks for.
  class GemSuite
    FILE = File.join(__dir__, "gem_suites.yml")
    ROOT = File.join(Checkout::ROOT, "tmp/gem-suites", "#{RUBY_ENGINE}-#{RUBY_VERSION}")
    RUNNERS = File.join(__dir__, "runners")
    RUBY = Gem::Version.new(RUBY_VERSION)

    # The suites that the running Ruby takes.
    #: () -> Array[GemSuite]
    def self.all
      YAML.safe_load_file(FILE).filter_map do |entry|
        version = entry.fetch("versions").find { |_, least| RUBY >= Gem::Version.new(least) }&.first
        new(entry, version) if version && !entry.fetch("not_on", []).include?(RUBY_VERSION[/\A\d+\.\d+/])
      end
    end

    attr_reader :version

    def initialize(entry, version)
      @entry = entry
      @version = version
    end

    def title = @entry.fetch("name")
    def gem_name = @entry.fetch("gem", title)
    def name = "#{gem_name}-#{version}"
    def folder = File.join(ROOT, name)
    def ways = RECORDINGS
    # Does it run unasked? Its source then comes with the gem.
    def selected? = @entry["selected"] == true

    # Gets the source, the gems and the extension, once.
    # @return [String, nil] why the tests can't be had
    #: () -> String?
    def missing
      return if File.exist?(done = "#{folder}/.witness-ready")

      FileUtils.rm_rf(folder)
      FileUtils.mkdir_p(folder)
      why = fetch || bundle || build
      FileUtils.touch(done) unless why
      why
    end

    # The environment of each run.
    #: () -> Hash[String, String]
    def env
      { "BUNDLE_GEMFILE" => "#{folder}/Gemfile.witness", "BUNDLE_PATH" => "#{ROOT}/bundle",
        "BUNDLE_APP_CONFIG" => "#{ROOT}/config" }.merge(@entry.fetch("env", {}), files_env, "WITNESS_WITHOUT" => without)
    end

    # @param tests [Array<String>, nil] by the names that the runner tells; all
    #: (?Array[String]?) -> Array[String]
    def command(tests = nil)
      runner = @entry.fetch("runner")
      ruby = [RbConfig.ruby, "-rbundler/setup", *@entry.fetch("ruby", []), File.join(RUNNERS, "#{runner}.rb")]
      ruby + send(:"words_of_#{runner}", tests)
    end

    private

    def files_env
      loads = %w[minitest test_unit].include?(@entry.fetch("runner")) && File.exist?("#{folder}/Gemfile.witness.lock")
      loads ? { "WITNESS_FILES" => files.join("\n") } : {}
    end

    def files
      except = @entry.fetch("except", []).flat_map { |pattern| [pattern, "#{pattern}/**"] }
      found = @entry.fetch("files").flat_map { |pattern| Dir[pattern, base: folder] }.sort
      found.reject! { |file| except.any? { |pattern| File.fnmatch?(pattern, file) } }
      found.empty? ? raise("#{name}: no file #{@entry["files"].join(" ")}") : found.uniq
    end

    def any_of(tests) = "/\\A(?:#{tests.map { |test| Regexp.escape(test) }.join("|")})\\z/"
    def words_of_minitest(tests)
      ["--seed", "1", "-v", *(["-n", any_of(tests)] if tests), *(["-e", "/#{without}/"] if without)]
    end

    def without = @entry["without"]

    # test-unit's -n knows a method's name alone.
    def words_of_test_unit(tests)
      only = (tests || []).flat_map { |test| ["-t", test[/.*(?=#)/], "-n", test[/(?<=#).*/]] }
      ["--verbose=verbose", "--no-use-color", *(["--ignore-name", "/#{without}/"] if without), *only]
    end

    def words_of_rspec(tests) = tests ? tests.map { |test| test[/\A\S+/] } : files
    def words_of_sus(tests) = tests ? tests.map { |test| test[/\A\S+/] } : files

    def fetch
      local = ENV["PITWALL_SUITE_SOURCES"] && File.join(ENV["PITWALL_SUITE_SOURCES"], gem_name)
      return unpack_gem unless @entry["repository"]

      url = local && File.directory?(local) ? local : @entry["repository"]

      url = "file://#{url}" if url.start_with?("/")
      tag = @entry.fetch("tag", "v%s") % version
      clone = %w[git -c advice.detachedHead=false clone -q --depth 1 --branch]
      said, status = Open3.capture2e(*clone, tag, url, folder)
      "#{name}: #{url} can't be cloned at #{tag}: #{said.lines.last}" unless status.success?
    end

    def unpack_gem
      download || run("tar", "-xf", "#{name}.gem", "data.tar.gz", chdir: ROOT) || run("tar", "-xzf", "#{ROOT}/data.tar.gz") ||
        run("sh", "-c", "gem specification ../#{name}.gem --ruby > #{gem_name}.gemspec")
    end

    # `gem fetch` would load the names of all gems first, which takes gigabytes of memory.
    # @return [String, nil] why it failed
    def download
      return if File.exist?(file = "#{ROOT}/#{name}.gem")

      address = Gem.sources.first.uri + "gems/#{name}.gem"
      File.binwrite("#{file}.part", Gem::RemoteFetcher.fetcher.fetch_path(address))
      File.rename("#{file}.part", file)
      nil
    rescue Gem::RemoteFetcher::FetchError => error
      "#{name}: #{error.message}"
    end

    def bundle
      gems = @entry.fetch("gems", {}).map { |gem, wanted| "gem #{gem.dump}#{", #{wanted.dump}" if wanted}\n" }
      here = @entry["gemspec"] == false ? [] : [gem_name, *@entry["also"]]
      own = here.map { |gem| "gem #{gem.dump}, path: #{folder.dump}\n" }.join
      File.write("#{folder}/Gemfile.witness", "source \"https://rubygems.org\"\n#{own}#{gems.join}")
      run("bundle", "install", "--quiet")
    end

    def build
      extensions = @entry.fetch("extensions", [])
      extensions.each do |folder_of|
        here = File.join(folder, folder_of)
        lib = File.join(folder, @entry.fetch("lib", "lib"))
        why = run(RbConfig.ruby, "-rbundler/setup", "extconf.rb", chdir: here) ||
              run("make", "install", "sitearchdir=#{lib}", "sitelibdir=#{lib}", chdir: here)
        return why if why
      end
      nil
    end

    # @return [String, nil] why it failed
    def run(*words, chdir: folder)
      FileUtils.mkdir_p(chdir)
      said, status = Open3.capture2e({ "RUBYOPT" => nil, "RUBYLIB" => nil }.merge(env), *words, chdir: chdir)
      "#{name}: #{words.first(2).join(" ")} failed: #{said.lines.last(8).join}" unless status.success?
    end
  end
end
