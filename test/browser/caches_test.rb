# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/browser"
require_relative "../support/recording_builder"

# The page's tab of changes that empty caches: a time line beside garbage collection, and stacks.
class CachesPageTest < Minitest::Test
  include Browser

  MAIN = ["<main>", "/srv/a.rb", 1, 1].freeze
  DEFINES = [MAIN, ["Shop#defines", "/srv/a.rb", 5, 6]].freeze
  SETS = [MAIN, ["Shop#sets", "/srv/a.rb", 9, 10]].freeze
  PICTURES = ENV["PITWALL_PICTURES"] # a folder, to look at

  def recording
    RecordingBuilder.build(mode: "none") do |s|
      s.thread(1, "main")
      s.change("constant_set", "Shop::A", stack: SETS, at: 0, constants: 2, misses: 0)
      s.change("method_added", "<b>Shop</b>#a", stack: DEFINES, at: 500_000_000, misses: 0)
      s.change("constant_set", "Shop::B", stack: SETS, at: 1_000_000_000, constants: 1, misses: 45)
      s.cache_sums({ "constant_cache_invalidations" => [5, 8, 0], "constant_cache_misses" => [1000, 1055, 0] })
      s.collection(start: 100_000_000, marking: 5_000_000, sweeping: 1_000_000)
      s.stats["elapsed_ns"] = 1_000_000_000
    end
  end

  def test_a_mark_has_its_stack
    File.binwrite(file("x.pit"), recording)
    result = pitwall("report", "x.pit", "--format", "html", "--out", "x.html")
    assert result.status.success?, result.err
    seen = in_browser("page.mjs", "caches", file("x.html"), *PICTURES)
    assert_equal [[], []], seen.values_at("complaints", "nameless")
    assert_equal %w[GC constants methods], seen["lanes"]
    assert_equal "method defined: <b>Shop</b>#a at 500 ms", seen.dig("clicked", "title")
    assert_equal ["Shop#defines /srv/a.rb:6", "<main> /srv/a.rb:1"], seen.dig("clicked", "frames")
    assert_match(/\Aconstant set: Shop::A at 0/, seen.dig("first", "title"))
    assert_equal "constant set: Shop::B", seen.dig("row", "title")
    text = pitwall("report", "x.pit", "--view", "caches").err + pitwall("report", "x.pit", "--view", "caches").out
    ["constant cache misses that follow (at most", "Constants: leave the change out"].each do |words|
      assert_includes seen["text"], words
      assert_includes text.gsub(/\s+/, " "), words
    end
  end
end
