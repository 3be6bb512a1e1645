# frozen_string_literal: true

require "digest"
require "rbconfig"
require_relative "../lib/pitwall/native"
require_relative "bench_child"

# What the scripts and the tests know about this working tree: where its gems and builds lie, and whether they are current.
module Checkout
  ROOT = File.expand_path("..", __dir__)
  GEMFILE = File.join(ROOT, "Gemfile")
  # Bundler puts each ABI's below ruby/ABI/; but two Rubies of one ABI may be built for platforms of other names, and neither
  # loads the gems' extensions that were compiled for the other.
  GEMS = File.join(ROOT, "vendor/bundle", RbConfig::CONFIG["arch"])
  TAG = Pitwall.const_get(:NativeLoader).tag
  BUILD = File.join(ROOT, "tmp/native", TAG)
  EXTENSION = File.join(ROOT, "lib/pitwall/native", TAG, "pitwall.so")

  module_function

  # Makes vendor/bundle's gems known to this process only: an environment variable would reach the commands it starts.
  #: () -> void
  def use_vendored_gems
    home = File.join(GEMS, RUBY_ENGINE, RbConfig::CONFIG["ruby_version"])
    Gem.paths = { "GEM_HOME" => home, "GEM_PATH" => [home, *Gem.path].uniq.join(File::PATH_SEPARATOR) }
  end

  # The same for a process that runs tests. Ruby 4.0 comes with minitest 6, which lacks minitest/mock; the tests use version 5.
  #: () -> void
  def use_test_gems
    use_vendored_gems
    gem "minitest", "< 6"
  end

  #: () -> bool
  def ready? = gems_current? && extension_current? && BenchChild.current?(ROOT)

  def gems_current? = stamped?(gems_stamp, gems_digest)

  def extension_current? = File.file?(EXTENSION) && stamped?(extension_stamp, extension_digest)

  # Beside what it describes: deleting the gems or the build deletes the stamp as well.
  def gems_stamp = File.join(GEMS, "pitwall-#{RbConfig::CONFIG["ruby_version"]}.stamp")

  def extension_stamp = "#{EXTENSION}.stamp"

  def gems_digest = digest(["Gemfile", "Gemfile.lock", "pitwall.gemspec"])

  # A debug or sanitised build is another build of the same sources. Whether a JIT is on (" +YJIT") makes no difference.
  def extension_digest
    ruby = RUBY_DESCRIPTION.gsub(/ \+[A-Z]+(?: [a-z]+)*/, "")
    Dir.chdir(ROOT) { digest(Dir["ext/pitwall/**/*.{c,h,rb}"].sort) } + " #{ruby} #{ENV["PITWALL_ASAN"]} #{ENV["PITWALL_UNKNOWN_LAYOUT"]}".rstrip
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
