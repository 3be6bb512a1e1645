# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/browser"

# Our exports in the real speedscope (its npm package's page) in a real browser.
class SpeedscopeTest < Minitest::Test
  include Browser

  # Known shares: two thirds in one method, one third in another, and a thread that sleeps.
  PROGRAM = <<~'RUBY'
    def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    def burn(until_then) = (nil while clock < until_then)
    def longer = burn(clock + 0.6)
    def shorter = burn(clock + 0.3)
    sleeper = Thread.new { Thread.current.name = "sleeper"; sleep }
    longer
    shorter
    sleeper.kill
  RUBY

  def setup
    super
    File.write(file("x.rb"), PROGRAM)
    result = pitwall("profile", "--quiet", "--record", file("x.pit"), "--", RUBY, file("x.rb"))
    assert result.status.success?, result.err
  end

  def test_the_speedscope_export_opens_with_names_and_weights
    seen = open_in_speedscope("speedscope", "x.json")
    assert_empty seen.fetch("complaints")
    names = seen.fetch("profiles").map { |row| row[1] }
    assert names.any? { |name| name.include?("main") }, names.inspect
    assert names.any? { |name| name.include?("sleeper") }, names.inspect
    assert_shares seen
  end

  def test_collapsed_stacks_open_with_names_and_weights
    seen = open_in_speedscope("collapsed", "x.txt", "--thread", "main")
    assert_empty seen.fetch("complaints")
    assert_shares seen
  end

  private

  # Total of a method in percent, as the page says: "600.12ms (66%)".
  def assert_shares(seen)
    shares = seen.fetch("methods").to_h { |total, _, name| [name, total[/\(([\d.]+)%\)/, 1].to_f] }
    assert_in_delta 66.7, shares.fetch("Object#longer"), 12, shares.inspect
    assert_in_delta 33.3, shares.fetch("Object#shorter"), 12, shares.inspect
  end

  def open_in_speedscope(format, name, *options)
    result = pitwall("export", file("x.pit"), "--to", format, "--out", file(name), *options)
    assert result.status.success?, result.err
    in_browser("speedscope.mjs", file(name), File.join(MODULES, "#{format}.png"))
  end
end
