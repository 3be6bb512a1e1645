# frozen_string_literal: true

require_relative "test_helper"
require_relative "support/command_line"

# The two gems as users get them: installed, away from the checkout.
class GemsTest < Minitest::Test
  include CommandLine

  NAMES = %w[pitwall-core pitwall].freeze

  def files(name) = Gem::Specification.load(File.join(Checkout::ROOT, "#{name}.gemspec")).files

  def test_each_file_is_in_one_gem
    core, command = NAMES.map { |name| files(name) }
    assert_equal %w[LICENSE.txt], core & command
    all = Dir.chdir(Checkout::ROOT) { Dir["lib/**/*.rb", "exe/*", "ext/pitwall/**/*.{c,h,rb}"] }
    assert_empty all - core - command
    assert_empty((core + command).reject { |file| File.file?(File.join(Checkout::ROOT, file)) })
  end

  def test_core_is_what_the_target_loads_and_depends_on_nothing
    core = files("pitwall-core")
    assert_includes core, "lib/pitwall/collect/session.rb"
    refute_includes core, "lib/pitwall/launch.rb"
    assert_empty core.grep(%r{\Alib/pitwall/(cli|record|analyse|show|doctor)})
    assert_empty Gem::Specification.load(File.join(Checkout::ROOT, "pitwall-core.gemspec")).dependencies
  end

  # Compiles the extension once more, as `gem install` does.
  def test_the_installed_gems_work
    skip "peer absent: ruby's headers" unless File.file?(File.join(RbConfig::CONFIG["rubyhdrdir"].to_s, "ruby.h"))
    gem_home = file("gem home") # a space, as in some people's home folders
    environment = { "GEM_HOME" => gem_home, "GEM_PATH" => [gem_home, *Gem.path].join(File::PATH_SEPARATOR) }
    NAMES.each do |name|
      built = file("#{name}.gem")
      run!(environment, RUBY, "-S", "gem", "build", "--strict", "-o", built, "#{name}.gemspec", dir: Checkout::ROOT)
      run!(environment, RUBY, "-S", "gem", "install", "--local", "--no-document", "--ignore-dependencies", "--no-user-install", "--bindir", file("bin"), built)
    end
    command = [RUBY, file("bin/pitwall"), "profile", "--format", "json", "--out", "-", "--", RUBY, "-e", "#{CommandLine.busy(0.2)} puts :done"]
    result = run!(environment, *command)
    assert_match(/\Adone\n\{/, result.out)
    assert_equal "pitwall/report-1", JSON.parse(result.out.delete_prefix("done\n"))["schema"]
    # The launcher comes with the extension.
    result = run!(environment, RUBY, file("bin/pitwall"), "bench", "--runs", "1", "--warmup", "1", "--format", "json", "-e", "1 + 1")
    assert_equal "pitwall/bench-1", JSON.parse(result.out)["schema"]
    # As a program's own library, with nothing but core.
    run!(environment, RUBY, "-e", "gem 'pitwall-core'; require 'pitwall'; Pitwall.profile(record: 'x.pit') { 1 }; exit File.size?('x.pit') ? 0 : 1")
  end

  def run!(environment, *command, dir: @dir)
    capture(environment, *command, dir: dir).tap { |result| assert result.status.success?, "#{command.join(" ")}\n#{result.out}#{result.err}" }
  end
end
