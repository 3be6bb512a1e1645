# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"

# The process of `pitwall bench`: one file, assembled from the parts in lib/pitwall/bench_child/.
class AssembledTest < Minitest::Test
  include CommandLine

  FOLDER = "lib/pitwall/bench_child"

  # A tree with the parts, without the assembled file.
  def tree
    root = file("tree")
    FileUtils.mkdir_p(File.join(root, "lib/pitwall"))
    FileUtils.cp_r(File.join(Checkout::ROOT, FOLDER), File.join(root, FOLDER))
    FileUtils.rm_f(BenchChild.path(root))
    root
  end

  def part(root, name) = File.join(root, FOLDER, "#{name}.rb")

  def test_the_assembled_file_is_written_and_kept_current
    root = tree
    refute BenchChild.current?(root)
    BenchChild.write(root)
    assert BenchChild.current?(root)
    assert_equal File.binread(BenchChild.path(Checkout::ROOT)), File.binread(BenchChild.path(root))

    written = File.stat(BenchChild.path(root)).ino
    BenchChild.write(root)
    assert_equal written, File.stat(BenchChild.path(root)).ino, "a current file was written again"

    File.write(part(root, "digest"), "# newer\n", mode: "a")
    refute BenchChild.current?(root)
    BenchChild.write(root)
    assert BenchChild.current?(root)
    assert_includes File.read(BenchChild.path(root)), "\n# newer\n"
    assert_equal %w[assembled.rb], Dir.children(File.join(root, FOLDER)).grep(/assembled/)
  end

  def test_a_line_of_the_assembled_file_leads_to_its_part
    lines = File.readlines(BenchChild.path(Checkout::ROOT), chomp: true)
    BenchChild.parts.each do |name|
      named = lines.index("# part: #{name}.rb")
      text = File.readlines(part(Checkout::ROOT, name), chomp: true)
      assert_equal text.drop(1), lines[named + 1, text.size - 1], name
    end
  end

  def test_a_part_that_the_list_lacks_or_the_folder_lacks
    root = tree
    File.write(part(root, "more"), "# frozen_string_literal: true\n")
    assert_match(/list of parts and the folder differ in more\z/, refusal(root))
    File.rename(part(root, "stub"), part(root, "more"))
    assert_match(/differ in stub, more|differ in more, stub/, refusal(root))
    File.rename(part(root, "more"), part(root, "stub"))
    File.write(part(root, "stub"), "module Pitwall; end\n")
    assert_match(%r{bench_child/stub\.rb: line 1 is no}, refusal(root))
  end

  def refusal(root) = assert_raises(RuntimeError) { BenchChild.write(root) }.message

  # Any Ruby can run the assembled file, alone.
  def test_parts_need_nothing_but_core_ruby
    BenchChild.parts.each do |name|
      text = File.read(part(Checkout::ROOT, name))
      assert_operator text.lines.size, :<=, 500, name
      refute_match(/^\s*(require|require_relative|autoload)\b/, text, name)
      RubyVM::InstructionSequence.compile(text, name)
    end
  end

  # A checkout that was never set up.
  def test_without_the_assembled_file_there_is_one_clear_line
    lib = file("lib")
    FileUtils.cp_r(File.join(Checkout::ROOT, "lib"), lib)
    FileUtils.rm_f(File.join(lib, "pitwall/bench_child/assembled.rb"))
    result = capture({}, RUBY, "-I#{lib}", "-e", "require 'pitwall/ips'")
    expected = %r{bench_child/assembled\.rb is missing: run script/setup in the checkout \(Pitwall::CannotMeasure\)}
    assert_match(expected, result.err.lines.first)
    File.write(file("a.rb"), "Benchmark.ips { |x| x.report('a') { } }")
    expected = %r{\Apitwall: pitwall/bench_child/assembled\.rb, .* is missing: .*script/setup in a checkout$}
    assert_one_line 4, expected, pitwall("bench", "a.rb", env: { "TEST_LIB" => lib, "PITWALL_DEBUG" => nil })
  end
end
