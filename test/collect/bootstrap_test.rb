# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"

# What a program sees of the bootstrap: nothing.
class BootstrapTest < Minitest::Test
  include CommandLine

  BOOTSTRAP = File.join(Checkout::ROOT, "lib/pitwall/collect/bootstrap.rb")

  def setup
    super
    @parts = file("parts")
    Dir.mkdir(@parts, 0o700)
  end

  def ruby(*arguments, env: {}, bootstrap: BOOTSTRAP, parts: @parts)
    settings = { "RUBYOPT" => "-r#{bootstrap.delete_suffix(".rb")}", "PITWALL_PARTS" => parts, "PITWALL_OPTIONS" => "interval_ns=1000000;mode=signal;signal=URG" }
    out, err, status = Open3.capture3(CLEAN.merge(settings, env), RUBY, *arguments, chdir: @dir)
    Result.new(out, err, status)
  end

  def part_names = Dir.children(@parts).grep(/\.pit\z/)

  def messages = File.exist?(path = File.join(@parts, "messages")) ? File.read(path) : ""

  # A gem folder whose bootstrap finds what a test puts there.
  def copy_of_core
    root = file("core with a space")
    core = Gem::Specification.load(File.join(Checkout::ROOT, "pitwall-core.gemspec")).files
    core.grep(%r{\Alib/}).each do |path|
      FileUtils.mkdir_p(File.dirname(File.join(root, path)))
      FileUtils.cp(File.join(Checkout::ROOT, path), File.join(root, path))
    end
    "#{root}/lib/pitwall"
  end

  # RUBYOPT can't name a path with spaces: through a link, as the command does it.
  def linked(core)
    link = file("boot.rb")
    File.symlink(File.join(core, "collect/bootstrap.rb"), link)
    link
  end

  def test_it_records_and_leaves_the_program_alone
    result = ruby("-e", "puts :hello; warn :there; exit 3")
    assert_equal ["hello\n", "there\n", 3], [result.out, result.err, result.status.exitstatus]
    assert_equal 1, part_names.size
    assert_empty messages
  end

  def test_nothing_but_pitwall_and_rbconfig_is_loaded
    list = "puts $LOADED_FEATURES"
    plain = Open3.capture2(CLEAN, RUBY, "-e", list).first.lines(chomp: true)
    more = ruby("-e", list).out.lines(chomp: true) - plain
    foreign = more.reject { |path| path.start_with?(Checkout::ROOT) }
    assert_empty foreign
    refute_empty more
  end

  def test_no_global_and_no_top_level_constant_but_pitwall_appears
    list = "p [Object.constants.sort, global_variables.sort, Object.private_instance_methods(false).sort]"
    plain = eval(Open3.capture2(CLEAN, RUBY, "-e", list).first)
    recorded = eval(ruby("-e", list).out)
    assert_equal [[:Pitwall], [], []], recorded.zip(plain).map { |after, before| after - before }
  end

  def test_it_works_without_rubygems
    result = ruby("--disable-gems", "-e", "puts defined?(Gem).inspect")
    assert_equal ["nil\n", ""], [result.out, result.err]
    assert_equal 1, part_names.size
    assert_empty messages
  end

  def test_without_a_parts_folder_it_does_nothing
    result = ruby("-e", "p defined?(Pitwall)", env: { "PITWALL_PARTS" => nil })
    assert_equal ["nil\n", ""], [result.out, result.err]
  end

  def test_a_parts_folder_that_is_gone_is_no_matter
    result = ruby("-e", "puts 1", parts: file("gone"))
    assert_equal ["1\n", "", true], [result.out, result.err, result.status.success?]
  end

  def test_it_is_found_through_a_link_beside_folders_with_spaces
    core = copy_of_core
    FileUtils.cp_r("#{Checkout::ROOT}/lib/pitwall/native", core)
    result = ruby("-e", "puts 1", bootstrap: linked(core))
    assert_equal ["1\n", ""], [result.out, result.err]
    assert_empty messages
    assert_equal 1, part_names.size
  end

  def test_without_an_extension_it_says_so_once_in_messages
    bootstrap = linked(copy_of_core) # copied without its builds
    2.times { assert_equal ["1\n", "", true], ruby("-e", "puts 1", bootstrap: bootstrap).then { |r| [r.out, r.err, r.status.success?] } }
    assert_empty part_names
    assert_match(/\Aruby #{RUBY_VERSION} .*no extension for ruby.*gem install pitwall-core.*\n/, messages)
    assert_equal 1, messages.lines.uniq.size
  end

  def test_whatever_the_session_raises_stays_inside
    core = copy_of_core
    FileUtils.cp_r("#{Checkout::ROOT}/lib/pitwall/native", core)
    bootstrap = linked(core)
    { "raise 'one\ntwo'" => /one$/, "raise NoMemoryError" => /memory/i, "raise LoadError, 'no such'" => /no such/, "def (" => /could not be recorded/,
      "throw :nobody" => /nobody/ }.each do |body, message|
      File.write(File.join(core, "collect/session.rb"), body)
      result = ruby("-e", "puts 1", bootstrap: bootstrap)
      assert_equal ["1\n", "", true], [result.out, result.err, result.status.success?], body
      assert_match(message, messages.lines.last)
      assert_equal 1, messages.lines.size
      File.unlink(File.join(@parts, "messages"))
    end
  end

  def test_another_interpreter_is_named
    File.write(file("other.rb"), <<~RUBY)
      Object.send(:remove_const, ARGV[0])
      Object.const_set(ARGV[0], ARGV[1])
      load #{BOOTSTRAP.dump}
    RUBY
    { %w[RUBY_ENGINE jruby] => "is not CRuby", %w[RUBY_VERSION 2.7.8] => "is older than Ruby 3.1", %w[RUBY_VERSION 1.9.3] => "older" }.each do |arguments, message|
      result = ruby(file("other.rb"), *arguments, env: { "RUBYOPT" => nil })
      assert_equal ["", "", true], [result.out, result.err, result.status.success?]
      assert_match(/#{message}/, messages.lines.last)
    end
    assert_empty part_names
  end

  # Parsed by Rubies that know nothing younger: no safe navigation, no endless methods, no keyword shorthand, no rescue in blocks.
  def test_its_syntax_is_old
    source = File.read(BOOTSTRAP)
    refute_match(/&\.|\bdef \w+.* = |\{ \w+: \}|\bit\b \}|=> e in|<<~/, source)
    assert_operator source.scan(/\bdo\b/).size, :==, 0
  end
end
