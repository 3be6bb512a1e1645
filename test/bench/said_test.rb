# frozen_string_literal: true

require_relative "../test_helper"
require "open3"
require "pitwall/bench/said"

class SaidTest < Minitest::Test
  Said = Pitwall::Bench::Said

  def ruby(source) = Open3.capture3(RbConfig.ruby, "--disable-gems", "-e", source)[1]

  def test_of_rubys_backtraces_the_line_with_the_message
    { "def a = raise(KeyError, 'no such key'); def b = a; b" => "no such key (KeyError)",
      "def a = raise(\"first\\nsecond\\nthird\"); def b = a; b" => "first (RuntimeError)",
      "def a = Integer('x')\ndef b = a\nbegin; b; rescue => e; raise IOError, 'outer'; end" => "outer (IOError)",
      "warn 'note: begins'; def a = File.read('config/none.yml'); a" => "No such file or directory @ rb_sysopen - config/none.yml (Errno::ENOENT)",
      "module A; class Odd < StandardError; end; end; def a = raise(A::Odd, 'x'); a" => "x (A::Odd)" }.each do |source, said|
      assert_match(/\A-e:\d+:in .*: #{Regexp.escape(said)}\z/, Said.line(ruby(source)), source)
    end
  end

  def test_of_other_words_the_last_line
    assert_equal "make: *** No rule to make target 'x'.  Stop.", Said.line("make: begins\nmake: *** No rule to make target 'x'.  Stop.\n\n")
    assert_equal "", Said.line("\n \n")
    assert_equal "a.rb:1:in `<main>': unhandled exception", Said.line("noise\na.rb:1:in `<main>': unhandled exception\n\tfrom b.rb:2:in `x'\n")
    assert_equal "x?", Said.line("x\xff\n")
  end
end
