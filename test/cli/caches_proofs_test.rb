# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require "shellwords"

# The commands that the report on caches prints prove what it says.
class CachesProofsTest < Minitest::Test
  include CommandLine

  PLANTED = <<~'RUBY'
    class Cart
      def total(count) = [price(count)]

      def price(count)
        define_singleton_method(:rate) { 2 } # the change
        count * rate
      end
    end

    if ENV["PLAIN"]
      20.times { Cart.new.total(1) }
    else
      require "benchmark/ips"
      Benchmark.ips { |x| x.report("total") { Cart.new.total(1) } }
    end
  RUBY
  private_constant :PLANTED

  def test_the_proofs_of_a_planted_program
    program = file("cart.rb")
    File.write(program, PLANTED)
    report = caches("caches", "--record", "a.pit", "--", "ruby", program).err
    commands = report.lines(chomp: true).grep(/\A  pitwall /).map { |line| Shellwords.split(line).drop(1) }
    samples = commands.find { |words| words.include?("--samples") }
    count = commands.find { |words| words.include?("methods_changed > 21") }
    stub = commands.find { |words| words.include?("--stub") }
    assert_equal ["compare", "--stub", "Cart#price", program], stub, report

    assert_includes caches(*samples).err, "Order: time in samples at the line"
    measured = pitwall(*stub, "--pairs", "1", "--budget", "1")
    assert_includes measured.out, "without Cart#price", measured.err
    assert_includes [0, 1, 3], measured.status.exitstatus

    assert_equal 1, caches(*count).status.exitstatus, "it changes as much as before"
    File.write(program, PLANTED.sub(/^.*# the change$/, "    rate = 2"))
    assert_equal 0, caches(*count).status.exitstatus, "it changes less"
  end

  private

  def caches(*words) = pitwall(*words, env: { "PLAIN" => "1" })
end
