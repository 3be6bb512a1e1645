# frozen_string_literal: true

require "digest"
require_relative "../test_helper"
require_relative "../support/browser"

# Pitwall's export in the real Firefox profiler (as the gem profile-viewer bundles it) in a real browser. The profiler's
# figures must be the figures of `pitwall report`.
class FirefoxTest < Minitest::Test
  include Browser

  VIEWER = "profile-viewer-0.0.7"
  SHA256 = "3e4f6b73a6b3bed78d1bfa2028ec534537cf7cdb3b59442cb8d6884bee9369ad"
  PROGRAM = <<~'RUBY'
    def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    def burn(until_then) = (nil while clock < until_then)
    def longer = burn(clock + 0.4)
    def shorter = burn(clock + 0.2)
    sleeper = Thread.new { Thread.current.name = "sleeper"; sleep 0.3; shorter }
    require "pitwall"
    Pitwall.request(route: "orders#show") { longer }
    GC.start
    sleeper.join
  RUBY

  def setup
    super
    @pages = install_viewer
    File.write(file("x.rb"), PROGRAM)
    command = [RUBY, "-I#{Checkout::ROOT}/lib", file("x.rb")]
    result = pitwall("profile", "--quiet", "--record", file("x.pit"), "--", *command)
    assert result.status.success?, result.err
    @report = JSON.parse(pitwall("report", file("x.pit"), "--format", "json").out)
  end

  def test_threads_weights_states_and_collections
    seen = open_in_profiler("wall")
    assert_empty seen.fetch("complaints")
    assert_operator seen.fetch("version"), :>=, 56
    names = [@report, seen].map { |found| found["threads"].map { |thread| thread["name"] }.sort }
    assert_equal(*names)
    @report["threads"].each do |expected|
      thread = seen["threads"].find { |one| one["name"] == expected["name"] }
      assert_in_delta expected["wall"] / 1e6, thread["roots"].sum(&:last), 0.01, expected["name"]
      assert_in_delta expected["cpu"], thread["cpu"], 1000, expected["name"]
      assert_states expected, thread
    end
    assert_selfs seen
    gc = JSON.parse(pitwall("report", file("x.pit"), "--view", "gc", "--format", "json").out).fetch("gc")
    shown = seen["threads"].flat_map { |thread| thread["markers"] }.select { |name,| name == "GC" }.map(&:last)
    assert_equal gc.values_at("count", "marking_ns", "sweeping_ns"),
                 %w[runs marking sweeping].map { |name| shown.sum { |data| data[name] } }
    assert_operator gc["count"], :>=, 1
    assert_request seen["threads"].find { |thread| thread["name"] == "main" }["markers"]
  end

  def test_cpu_as_the_weight
    seen = open_in_profiler("cpu")
    assert_empty seen.fetch("complaints")
    assert_in_delta @report["threads"].sum { |thread| thread["cpu"] } / 1e6,
                    seen["threads"].sum { |thread| thread["roots"].sum(&:last) }, 0.01
  end

  private

  # From its beginning to its end, with what it was for.
  def assert_request(markers)
    requests, labels = %w[request labels].map { |name| markers.select { |found,| found == name } }
    shown = [requests, labels].map { |rows| rows.map { |row| row.last["labels"] } }
    assert_equal [["route=orders#show"], ["route=orders#show"]], shown
    assert_operator requests.sum { |_, from, to,| to - from }, :>=, 400
    assert_operator labels.sum { |_, from, to,| to - from }, :>=, 200
  end

  # Own time by method, over all threads.
  def assert_selfs(seen)
    selfs = seen["threads"].map { |thread| thread["selfs"] }.reduce { |a, b| a.merge(b) { |_, x, y| x + y } }
    @report["methods"].group_by { |row| row["name"] }.each do |name, rows|
      assert_in_delta rows.sum { |row| row["self"] } / 1e6, selfs.fetch(name, 0), 0.01, name
    end
  end

  # A marker for each stay in a state.
  def assert_states(expected, thread)
    spent = thread["markers"].select { |*, data| data && data["type"] == "state" }.group_by(&:first)
                             .transform_values { |markers| markers.sum { |_, from, to,| to - from } }
    expected["states"].reject { |state, _| state == "unknown" }.each do |state, wall|
      assert_in_delta wall / 1e6, spent.fetch(state, 0), 0.01, "#{expected["name"]} #{state}"
    end
  end

  def open_in_profiler(weight)
    result = pitwall("export", file("x.pit"), "--to", "firefox", "--out", file("x.json"), "--weight", weight)
    assert result.status.success?, result.err
    in_browser("firefox.mjs", @pages, file("x.json"), File.join(MODULES, "firefox-#{weight}.png"))
  end

  # Its pages, once.
  def install_viewer
    pages = File.join(MODULES, VIEWER, "dist")
    return pages if File.exist?(File.join(pages, "index.html"))

    gem = File.join(MODULES, "#{VIEWER}.gem")
    name, version = VIEWER.match(/\A(.+)-([\d.]+)\z/).captures
    unless File.exist?(gem)
      out, status = Open3.capture2e(CLEAN, RUBY, "-S", "gem", "fetch", name, "-v", version, chdir: MODULES)
    end
    skip "peer absent: the gem #{VIEWER} (#{out.lines.last&.chomp})" if status && !status.success?
    assert_equal SHA256, Digest::SHA256.file(gem).hexdigest
    out, status = Open3.capture2e(CLEAN, RUBY, "-S", "gem", "unpack", gem, chdir: MODULES)
    assert status.success?, out
    pages
  end
end
