# frozen_string_literal: true

require "digest"
require "rbconfig"
require_relative "../lib/pitwall/native"
require_relative "bench_child"

# Facts about this working tree for the scripts and the tests: the folders of its gems and builds, and whether these are
# current.
module Checkout
  ROOT = File.expand_path("..", __dir__)
  GEMFILE = File.join(ROOT, "Gemfile")
  # Bundler has a folder for each ABI below this one. The platform is part of this path as well: two Rubies of one ABI
  # may have platforms of different names, and neither loads gem extensions that were compiled for the other.
  GEMS = File.join(ROOT, "vendor/bundle", RbConfig::CONFIG["arch"])
  TAG = Pitwall.const_get(:NativeLoader).tag
  BUILD = File.join(ROOT, "tmp/native", TAG)
  # The extensions by their folders below ext/, with the folders in which they are built.
  EXTENSIONS = { "pitwall" => BUILD, "fastboot" => File.join(BUILD, "fastboot") }.freeze
  EXTENSION = File.join(ROOT, "lib/pitwall/native", TAG, "pitwall.so")

  module_function

  # Makes the gems of vendor/bundle known to this process only. An environment variable would reach the commands that it
  # starts.
  #: () -> void
  def use_vendored_gems
    home = File.join(GEMS, RUBY_ENGINE, RbConfig::CONFIG["ruby_version"])
    Gem.paths = { "GEM_HOME" => home, "GEM_PATH" => [home, *Gem.path].uniq.join(File::PATH_SEPARATOR) }
  end

  # The same for a process that runs tests. The tests use minitest 5; Ruby 4.0 has minitest 6, which lacks
  # minitest/mock.
  #: () -> void
  def use_test_gems
    use_vendored_gems
    gem "minitest", "< 6"
  end

  #: () -> bool
  def ready? = gems_current? && extension_current? && BenchChild.current?(ROOT)

  def gems_current? = stamped?(gems_stamp, gems_digest)

  def extension_current? = File.file?(EXTENSION) && stamped?(extension_stamp, extension_digest)

  # A stamp lies in the folder that it describes: it is deleted together with the gems or the build.
  def gems_stamp = File.join(GEMS, "pitwall-#{RbConfig::CONFIG["ruby_version"]}.stamp")

  def extension_stamp = "#{EXTENSION}.stamp"

  def gems_digest = digest(["Gemfile", "Gemfile.lock", "pitwall.gemspec"])

  # A debug or sanitised build is another build of the same sources. Whether a JIT is on (" +YJIT") makes no difference.
  def extension_digest
    ruby = RUBY_DESCRIPTION.gsub(/ \+[A-Z]+(?: [a-z]+)*/, "")
    sources = Dir.chdir(ROOT) { digest(Dir["ext/**/*.{c,h,rb}"].sort) }
    "#{sources} #{ruby} #{ENV["PITWALL_ASAN"]} #{ENV["PITWALL_UNKNOWN_LAYOUT"]}".rstrip
  end

  def stamp(file, content) = File.write(file, "#{content}\n")

  def stamped?(file, content) = File.file?(file) && File.read(file) == "#{content}\n"

  def digest(files)
    files.each_with_object(Digest::SHA256.new) do |file, sum|
      content = File.binread(File.join(ROOT, file))
      sum << "#{file} #{content.bytesize}\n" << content
    end.hexdigest
  end
end
