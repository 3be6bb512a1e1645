# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/browser"
require_relative "../support/recording_builder"
require "uri"

# Filters of the page: what they are called in its address, its fields, keys and chips, with the figures of reports.
class BrowserFiltersTest < Minitest::Test
  include Browser

  APP = "/srv/app/lib/shop.rb"
  RACK = "/usr/lib/ruby/gems/3.4.0/gems/rack-3.1.8/lib/rack"
  MAIN = ["<main>", "/srv/app/run.rb", 1, 3].freeze
  CALL = ["Rack::Head#call", "#{RACK}/head.rb", 11, 12].freeze
  CART = ["Shop::Cart#total", APP, 10, 12].freeze
  EACH = ["Array#each", "", 0, 0, 1].freeze
  TAX = ["Shop::Tax.of", APP, 30, 31].freeze
  SET = ["Set#add", "/usr/lib/ruby/3.4.0/set.rb", 8, 9].freeze
  HASH = ["rb_hash_aset", "/usr/lib/libruby-3.4.so.3.4.1", 0, 0, 3].freeze
  COPY = ["memcpy", "/usr/lib/libc.so.6", 0, 0, 3].freeze
  MARKING = ["(marking)", "", 0, 0, 2].freeze
  PICTURES = ENV["PITWALL_PICTURES"]

  # Options of a report, and the page's words for them.
  FILTERS = [
    [[], ""],
    [%w[--time 100ms..350ms], "time=100ms..350ms"],
    [%w[--time 0.2505s..], "time=0.2505s.."],
    [%w[--focus Tax.of], "focus=Tax.of"],
    [%w[--focus rack --focus Set#add], "focus=rack&focus=Set%23add"],
    [%w[--hide Array#each --hide Shop::Tax], "hide=Array%23each&hide=Shop::Tax"],
    [%w[--only app], "only=app"],
    [%w[--only gems], "only=gems"],
    [%w[--only stdlib], "only=stdlib"],
    [%w[--only native], "only=native"],
    [%w[--only rack], "only=rack"],
    [%w[--native], "native=1"],
    [%w[--native --focus libc --hide libruby.so], "native=1&focus=libc&hide=libruby.so"],
    [%w[--blackbox gems/rack], "blackbox=gems/rack"],
    [%w[--blackbox Shop::Cart --gc caller], "blackbox=Shop::Cart&gc=caller"],
    [%w[--time ..400ms --focus Cart --hide Array#each --only app --blackbox Shop::Tax.of --weight cpu],
     "time=..400ms&focus=Cart&hide=Array%23each&only=app&blackbox=Shop::Tax.of&weight=cpu"]
  ].freeze
  TYPED = [["Time", "..400ms"], ["Focus", "Cart"], ["Hide", "Array#each"], ["Blackbox", "rack"]].freeze

  # Half a second on two threads; native frames below Ruby's.
  def recording
    RecordingBuilder.build do |segment|
      segment.thread 1, "main"
      segment.thread 2, "worker"
      10.times do
        segment.row stack: [MAIN, CALL, CART, EACH], wall: 10_007, cpu: 9_001
        segment.row stack: [MAIN, CALL, CART, EACH, TAX], wall: 10_013, cpu: 7_003
        segment.row stack: [MAIN, CALL, CART, HASH, COPY], wall: 10_001, cpu: 10_001
        segment.row stack: [MAIN, SET, HASH], wall: 9_999, cpu: 9_998
        segment.row stack: [MAIN, CALL, CART, MARKING], wall: 9_980, cpu: 9_000
      end
      20.times do |at|
        segment.row thread: 2, stack: [["Worker#run", APP, 50, 53], *([TAX] * (at % 3)), *([COPY] if at.even?)],
                    wall: 10_000, cpu: 9_100
      end
      5.times do |at|
        segment.collection start: at * 90_000_000, marking: 400_000, sweeping: 200_000, allocated: 40, living: 90
      end
      segment.stats["elapsed_ns"] = 500_000_000
    end
  end

  def setup
    super
    File.binwrite(file("x.pit"), recording)
    result = pitwall("report", "x.pit", "--format", "html", "--out", "x.html")
    assert result.status.success?, result.err
  end

  def test_figures_are_those_of_reports
    seen = browse("x.html", "filters")
    assert_empty seen["complaints"]
    FILTERS.zip(seen["of"]) do |(options, address), page|
      report = json(options)
      rows = report["methods"].reject { |row| row["total"].zero? }
      exact = rows.map { |row| row.values_at("name", "self", "total") }
      assert_equal exact.sort, page["exact"].sort, address
      percents = rows.to_h do |row|
        [row["name"], row.values_at("self_percent", "total_percent").map { |share| share.round(1) }]
      end
      assert_equal percents, shown(page["methods"]), address
      assert_empty page["drawn"] - percents.keys, address
      threads = report["threads"].to_h { |row| [row["name"], (row["wall"] / 1e6).round] }
      assert_equal threads, walls(page["threads"]), address
    end
  end

  def test_fields_and_keys_and_what_is_said
    seen = browse("x.html", "filterFields")
    assert_empty seen["complaints"] + seen["nameless"]
    hash = URI.decode_www_form_component(seen.dig("typed", "hash"))
    words = %w[time=..400ms focus=Cart hide=Array#each blackbox=rack only=app]
    assert_empty words.reject { |word| hash.include?(word) }, hash
    assert_equal 'No “Shop::Cart#totol” in the recording: did you mean Shop::Cart#total?.', seen["said"]
    assert_match(/“5s\.\.2s”: write the time as FROM\.\.TO/, seen["saidOfTime"])
    cleared = seen["cleared"]
    assert_equal ["#view=methods", shown(seen["whole"])], [cleared["hash"], shown(cleared["methods"])]
    assert_match(/focus=Shop::Cart%23total/, seen.dig("keys", "f"))
    assert_match(/hide=Shop::Cart%23total/, seen.dig("keys", "h"))
    assert_match(/This view has no stacks: focus does not change it/, seen["gc"])
  end

  # The switch, the key u and the chip change the same thing. Their figures are those of reports.
  def test_native_frames_are_shown_and_folded
    seen = browse("x.html", "native")
    assert_empty seen["complaints"] + seen["nameless"]
    steps = seen["steps"].to_h { |step| [step["step"], step] }
    assert_equal ["begin", "switch", "switch again", "key", "chip", "only native",
                  "key where native code alone is shown"],
                 steps.keys
    folded, native = [[], ["--native"]].map { |options| percents(options) }
    refute_equal folded, native
    { "begin" => false, "switch" => true, "switch again" => false, "key" => true, "chip" => false,
      "key where native code alone is shown" => false }.each do |name, on|
      step = steps[name]
      assert_equal on, step["checked"], name
      assert_equal on, step["hash"].include?("native=1"), name
      assert_equal on ? 1 : 0, step["chips"].grep(/native frames/).size, name
      assert_equal on ? native : folded, shown(step["methods"]), name
    end
    assert steps["only native"]["checked"]
    assert_equal percents(%w[--only native]), shown(steps["only native"]["methods"])
  end

  def test_a_page_begins_with_the_filters_that_it_was_made_with
    [FILTERS[-1], FILTERS[11], FILTERS[-3]].each do |options, address|
      result = pitwall("report", "x.pit", "--format", "html", "--out", "y.html", *options)
      assert result.status.success?, result.err
      seen = browse("y.html", "filters", [nil])
      rows = json(options)["methods"].reject { |row| row["total"].zero? }
      assert_equal rows.map { |row| row.values_at("name", "self", "total") }.sort, seen["of"][0]["exact"].sort, address
    end
  end

  private

  def browse(page, scenario, addresses = FILTERS.map(&:last))
    folder = PICTURES && File.join(PICTURES, "filters").tap { |path| FileUtils.mkdir_p(path) }
    in_browser("page.mjs", scenario, file(page), *folder,
               env: { "ADDRESSES" => JSON.generate(addresses), "TYPED" => JSON.generate(TYPED) })
  end

  # {method => [self, total]}, as the page writes them.
  def percents(options)
    rows = json(options)["methods"].reject { |row| row["total"].zero? }
    rows.to_h { |row| [row["name"], row.values_at("self_percent", "total_percent").map { |share| share.round(1) }] }
  end

  def json(options)
    result = pitwall("report", "x.pit", "--format", "json", *options)
    assert result.status.success?, result.err
    JSON.parse(result.out)
  end

  def shown(rows) = rows.to_h { |row| [row[-2], [row[0], row[2]].map(&:to_f)] }

  def walls(rows) = rows.to_h { |row| [row[-1], row[0][/[\d.]+/].to_f.round] }.reject { |_, wall| wall.zero? }
end
