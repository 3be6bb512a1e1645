# frozen_string_literal: true

require_relative "../test_helper"
require "open3"
require "pitwall/bench/error_line"

# The line of a failed program's standard error that says what went wrong.
class ErrorLineTest < Minitest::Test
  ErrorLine = Pitwall::Bench::ErrorLine

  def ruby(source) = Open3.capture3(RbConfig.ruby, "--disable-gems", "-e", source)[1]

  def test_the_line_with_the_message_of_a_backtrace
    { "def a = raise(KeyError, 'no such key'); def b = a; b" => "no such key (KeyError)",
      "def a = raise(\"first\\nsecond\\nthird\"); def b = a; b" => "first (RuntimeError)",
      "def a = Integer('x')\ndef b = a\nbegin; b; rescue => e; raise IOError, 'outer'; end" => "outer (IOError)",
      "warn 'note: begins'; def a = File.read('config/none.yml'); a" =>
        "No such file or directory @ rb_sysopen - config/none.yml (Errno::ENOENT)",
      "module A; class Odd < StandardError; end; end; def a = raise(A::Odd, 'x'); a" =>
        "x (A::Odd)" }.each do |source, line|
      assert_match(/\A-e:\d+:in .*: #{Regexp.escape(line)}\z/, ErrorLine.of(ruby(source)), source)
    end
  end

  def test_the_last_line_without_a_backtrace
    assert_equal "make: *** No rule to make target 'x'.  Stop.",
                 ErrorLine.of("make: begins\nmake: *** No rule to make target 'x'.  Stop.\n\n")
    assert_equal "", ErrorLine.of("\n \n")
    assert_equal "a.rb:1:in `<main>': unhandled exception",
                 ErrorLine.of("noise\na.rb:1:in `<main>': unhandled exception\n\tfrom b.rb:2:in `x'\n")
    assert_equal "x?", ErrorLine.of("x\xff\n")
  end
end
