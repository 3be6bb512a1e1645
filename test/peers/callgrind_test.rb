# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require "pitwall/cli"

# Our export, read by callgrind's own reader.
class CallgrindTest < Minitest::Test
  include CommandLine

  PROGRAM = <<~'RUBY'
    class Shop
      def price(n) = n.zero? ? 1 : tax(n) + n
      def tax(n) = n / 5
    end
    shop = Shop.new
    100.times { |i| shop.price(i) }
  RUBY

  def test_callgrind_annotate
    skip "no callgrind_annotate (Debian: valgrind)" unless ENV["PATH"].split(":").any? { |dir| File.executable?(File.join(dir, "callgrind_annotate")) }

    File.write(file("shop.rb"), PROGRAM)
    assert_equal 0, pitwall("trace", "--quiet", "--record", "x.pit", "--", RUBY, "shop.rb").status.exitstatus
    assert_equal 0, pitwall("export", "x.pit", "--to", "callgrind", "--out", "callgrind.out.x").status.exitstatus
    result = capture({}, "callgrind_annotate", "--tree=calling", "--inclusive=yes", "--threshold=100", "callgrind.out.x")
    assert result.status.success?, result.err
    assert_empty result.err
    assert_match(/^Profiled target: +shop\.rb/, result.out)
    assert_match(/Shop#price \(100x\)/, result.out)
    assert_match(%r{shop\.rb:Shop#tax \(99x\)}, result.out)
  end
end
