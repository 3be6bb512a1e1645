# frozen_string_literal: true

require "fileutils"
require "json"
require "open3"
require_relative "command_line"

# Tests in a real browser: Chromium. A Node.js script with the packages of test/browser/package.json drives the browser.
# Benchmarks call the module itself.
module Browser
  include CommandLine

  CHROMIUM = ENV.fetch("CHROMIUM", "/usr/bin/chromium")
  MODULES = File.join(Checkout::ROOT, "tmp/browser")
  HERE = File.join(Checkout::ROOT, "test/browser")

  class << self
    # The missing program and how to install it, or nil if nothing is missing.
    def missing(install: true)
      return "Chromium (apt-get install chromium)" unless File.executable?(CHROMIUM)
      npm = system("npm --version", out: File::NULL, err: File::NULL)
      return "Node.js with npm (apt-get install nodejs npm)" unless npm

      installed? || install ? install_packages : "the packages of test/browser (script/test test/browser installs them)"
    end

    # Returns the JSON object that the script prints.
    def run(script, *arguments, env: {})
      out, err, status = Open3.capture3(env, "node", File.join(HERE, script), MODULES, CHROMIUM, *arguments)
      raise "#{script} #{arguments.first}: #{err}" unless status.success?

      JSON.parse(out)
    end

    private

    def lock = File.read(File.join(HERE, "package-lock.json"))

    def stamp = File.join(MODULES, "stamp")

    def installed? = File.exist?(stamp) && File.read(stamp) == lock

    # Installs once for each content of the lock file.
    def install_packages
      return if installed?

      FileUtils.mkdir_p(MODULES)
      # Two test processes may install the packages at the same time.
      File.open("#{MODULES}.lock", File::RDWR | File::CREAT) do |lock|
        lock.flock(File::LOCK_EX)
        install_now unless installed?
      end
      nil
    end

    def install_now
      FileUtils.cp(Dir[File.join(HERE, "package*.json")], MODULES)
      log = File.join(MODULES, "npm.log")
      command = %w[npm ci --no-audit --no-fund]
      raise "npm ci failed: #{File.read(log)}" unless system(*command, chdir: MODULES, out: log, err: [:child, :out])

      File.write(stamp, lock)
    end
  end

  def setup
    super
    absent = Browser.missing
    skip "peer absent: #{absent}" if absent
  end

  def in_browser(script, *arguments, **options) = Browser.run(script, *arguments, **options)
end
