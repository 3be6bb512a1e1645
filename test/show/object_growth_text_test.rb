# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/fits"
require_relative "../support/random_recording"
require "pitwall/analyse"
require "pitwall/show"
require "pitwall/views"

class ObjectGrowthTextTest < Minitest::Test
  include Fits

  PATH = "/app/lib/a_folder_with_a_name/orders_of_the_shop.rb"

  def segments
    @segments ||= begin
      content = RecordingBuilder.build(mode: "none") do |segment|
        [5, 6].each do |id|
          segment.site(id, stack: [["Shop::Orders#keep", PATH, 1, id]], class_name: "Shop::Orders::Line#{"Item" * id}",
                       counters: [20_000, 0, 0, 0, 0, 0, 0, 2_000_000, 20_000, 0, 2_000_000])
        end
        (1..30).each do |at|
          segment.living(at, at_ns: at * 2_000_000_000, sites: { 5 => at * 1000, 6 => at * 77 },
                         rss: 50_000_000 + (at * 900_000), flags: 1)
        end
      end
      RandomRecording.read(content).segments
    end
  end

  def text(width: 100, **options)
    growth = Pitwall::Analyse::ObjectGrowth.new(segments)
    commands = Pitwall::Views.named("growth").commands("x.pit", growth.rows)
    Pitwall::Show::ObjectGrowthText.new(growth, Pitwall::Analyse::Summary.new(segments), commands: commands,
                                        hints: Pitwall::Views::Hints, base: "/app", width: width, **options).to_s
  end

  def test_every_width
    [60, 80, 100, 160].each do |width|
      view = text(width: width)
      assert_fits(view, width)
      assert_match(/^objects\/min +bytes\/min +grew by/, view)
      assert_match(/\+30,000 .*:5$/, view)
      assert_equal width > 60, view.include?("over time"), width
    end
  end

  def test_content
    view = text(width: 160)
    assert_match(/23 collections looked at, 23 of them full, after 15\.0 s of warm-up/, view)
    assert_includes view, "resident memory 48.5 MiB to 73.4 MiB · +25.7 MiB a minute after warm-up " \
                          "(99%: +25.7 MiB to +25.7 MiB)"
    assert_match(/\+30,000 +\+2\.86 MiB +\+22,000 +\+2\.10 MiB +30,000 +11% +\S{12} /, view)
    assert_match(/^1 more row \(--limit 2 shows all\)$/, text(limit: 1))
    assert_match(/pitwall compare x\.pit NEW\.pit/, view)
  end

  def test_sparkline
    spark = Pitwall::Show::Sparkline
    assert_equal "▅▅█", spark.text([[0, 0], [1, 4], [2, 4], [3, 8]], columns: 3)
    assert_equal "++@", spark.text([[0, 0], [1, 4], [2, 4], [3, 8]], columns: 3, unicode: false)
    assert_equal ["", "", ""], [[], [[1, 2]], [[0, 0], [1, 0]]].map { |points| spark.text(points) }
  end
end
