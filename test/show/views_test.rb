# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require_relative "../support/shop_recording"
require_relative "../support/drawn_view"
require "pitwall/analyse"
require "pitwall/show"

# Compares every text view with a file in test/fixtures/views. To accept a change of the views:
# UPDATE_VIEWS=1 ruby test/show/views_test.rb
class ViewsTest < Minitest::Test
  FOLDER = File.expand_path("../fixtures/views", __dir__)
  VIEWS = %i[flat tree bottom_up lines threads callers callees graph].freeze

  [80, 120].each do |width|
    VIEWS.each do |view|
      define_method(:"test_#{view}_at_#{width}_columns") do
        text = view(view, width)
        text.each_line(chomp: true) do |line|
          assert_operator Pitwall::Show::Text.width(line), :<=, width, line
          refute_match(/\e|\s\z/, line)
        end
        golden("#{view}_#{width}.txt", text)
      end
    end
  end

  def test_no_view_wraps_at_any_width
    VIEWS.product([40, 60, 61, 73, 97, 200]).each do |view, width|
      view(view, width).each_line(chomp: true) do |line|
        unless line.include?("pitwall report")
          assert_operator Pitwall::Show::Text.width(line), :<=, [width, 60].max, "#{view} at #{width}: #{line}"
        end
      end
    end
  end

  def test_notes_and_losses_are_told
    bytes = ShopRecording.bytes(mode: "safepoint", thread_states: false)
    recording = RandomRecording.read(bytes)
    recording.segments.first.stats.update("captures" => 1, "dropped" => 900, "truncated" => 3, "deferred_ticks" => 7,
                                          "refused_frames" => 1)
    difference = Struct.new(:wall_ratio, :cpu_ratio).new(1.0123, 1.05)
    text = DrawnView.drawn(Pitwall::Analyse::Report.new(recording.segments), file: "a.pit", width: 80,
                           warnings: ["process 1 ended without stop"], difference: difference)
    ["! process 1 ended without stop", "safepoint-biased", "no thread events", "99.9% of the samples were dropped",
     "1 sample every", "3 ticks came late and 7 were put off (their time is in the next sample)", "1 frame refused",
     "3 stacks were deeper", "wall ×1.012, CPU ×1.050"].each do |part|
      assert_includes text, part
    end
  end

  def heading(missed: 3, **head)
    recording = RandomRecording.read(ShopRecording.bytes(**head))
    recording.segments.each { |segment| segment.stats["missed_ticks"] = missed }
    DrawnView.drawn(Pitwall::Analyse::Report.new(recording.segments), file: "a.pit", width: 200)
  end

  def test_how_samples_were_taken_and_why
    assert_includes heading(mode: "signal", mode_reason: "its CPU quota is 1.5 cores"),
                    "mode signal (its CPU quota is 1.5 cores)"
    [{ mode: "signal", mode_reason: "asked for" }, { mode: "outside", mode_reason: "a core is spare" },
     { mode: "signal" }].each do |head|
      refute_includes heading(**head), "mode #{head[:mode]} ("
    end
  end

  def test_a_reader_that_came_late
    late = /reader came late to \d+% of its ticks, .*--mode signal/
    assert_match late, heading(mode: "outside", missed: 100_000)
    refute_match late, heading(mode: "outside")
    refute_match late, heading(mode: "signal", missed: 100_000)
    refute_match late, heading(mode: "outside", interval_ns: 100_000, missed: 100_000)
  end

  def test_a_source_line_stands_below_its_place
    report = Pitwall::Analyse::Report.new(RandomRecording.read(ShopRecording.bytes).segments,
                                          Pitwall::Analyse::Report::Query.new(within: "fib.rb"))
    source = Object.new
    def source.call(_, line) = (line == 3 ? "    n < 2 ? n : fib(n - 1)" : nil)
    def source.commit(_) = nil
    text = DrawnView.drawn(report, :lines, width: 80, source: source)
    assert_match(/fib\.rb:3\n +n < 2 \? n : fib\(n - 1\)$/, text)
  end

  def test_the_hint_is_left_out_where_it_would_not_run
    report = Pitwall::Analyse::Report.new(RandomRecording.read(ShopRecording.bytes).segments)
    text = DrawnView.drawn(report, file: "a.pit", width: 120)
    refute_includes text, "--callers Kernel#sleep", "who waits says nothing of where time goes"
    assert_match(/^waiting: 1\.97 s of 2\.97 s/, text)
    report.running.flat.first.method.name = "Cart#sum"
    assert_includes DrawnView.drawn(report, file: "a.pit", width: 120), "--callers Cart#sum"
    [["a" * 60, "Kernel#sleep"], ["a.pit", "block in x"]].each do |file, name|
      report.running.flat.each { |row| row.method.name = name }
      text = DrawnView.drawn(report, file: file, width: 80)
      refute_match(/NAME|--callers/, text)
      assert_match(/^Next: pitwall report \S+ --tree$/, text)
    end
  end

  # Middleware that only calls the next one is folded into a row. --all-frames shows all rows.
  def test_long_runs_of_other_code_are_one_row_of_the_tree
    bytes = RecordingBuilder.build do |segment|
      gems = Array.new(8) do |at|
        ["Rack::Part#{at}#call", "/usr/lib/ruby/gems/3.4.0/gems/rack-3.1.8/lib/rack/part.rb", 1, 2]
      end
      segment.row(stack: [["Object#main", "/srv/app/a.rb", 1, 3], *gems, ["Shop#show", "/srv/app/shop.rb", 4, 5]],
                  wall: 90_000, cpu: 90_000)
      segment.row(stack: [["Object#main", "/srv/app/a.rb", 1, 3], ["Shop#other", "/srv/app/shop.rb", 14, 15]],
                  wall: 90_000, cpu: 90_000)
    end
    report = Pitwall::Analyse::Report.new(RandomRecording.read(bytes).segments)
    rows = ->(**options) { DrawnView.body(report, :tree, width: 120, **options) }
    assert_match(/50\.0%.*├─ 8 frames, Rack::Part0#call to Rack::Part7#call$/, rows.call.join("\n"))
    assert_equal [5, 12], [rows.call.size, rows.call(all_frames: true).size]
    assert_match(/↳ Shop#show/, rows.call[3..].join("\n"))
  end

  def test_nothing_recorded_is_said
    report = Pitwall::Analyse::Report.new(RandomRecording.read(RecordingBuilder.build { |_| nil }).segments)
    VIEWS.first(4).each { |view| assert_includes DrawnView.drawn(report, view), "nothing was recorded" }
  end

  # On a narrow terminal columns of numbers are left out before names are cut.
  def test_a_narrow_flat_table_keeps_its_names
    lines = view(:flat, 60).lines(chomp: true)
    heads = lines.grep(/\A self /)
    refute_empty heads
    heads.each { |line| assert_match(/\A self +wall +total +method\z/, line) }
    assert_includes lines.join("\n"), "Shop::Fib.fib"
    assert_operator lines.select { |line| line.match?(/\A *\d/) }.map(&:size).max, :<=, 60
  end

  def test_colours_change_no_column
    marked = Object.new
    %i[bold dim red yellow green cyan].each do |style|
      marked.define_singleton_method(style) { |text| text.empty? ? text : "\e[1m#{text}\e[0m" }
    end
    assert_equal view(:flat, 80), view(:flat, 80, palette: marked).gsub(/\e\[\d+m/, "").gsub(/ +$/, "")
  end

  private

  def view(view, width, palette: Pitwall::Show::Plain)
    query = Pitwall::Analyse::Report::Query.new(callers: "fib", callees: "Cart#total_with_discounts_and_taxes")
    report = Pitwall::Analyse::Report.new(RandomRecording.read(ShopRecording.bytes).segments, query)
    DrawnView.drawn(report, view, file: "shop.pit", width: width, base: "/srv/app", palette: palette)
  end

  def golden(name, text)
    path = File.join(FOLDER, name)
    if ENV["UPDATE_VIEWS"]
      FileUtils.mkdir_p(FOLDER)
      File.write(path, "#{text}\n")
    end
    assert_equal File.read(path, encoding: "UTF-8"), "#{text}\n", name
  end
end
