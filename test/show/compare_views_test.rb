# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/fits"
require_relative "../support/measured"
require "json"
require "pitwall/analyse/compare/profile_change"
require "pitwall/show"
require "pitwall/show/compare/json"
require "pitwall/show/compare/markdown"
require "pitwall/show/compare/text"
require "pitwall/views/hints"

class CompareViewsTest < Minitest::Test
  include Fits

  Show = Pitwall::Show
  WIDTHS = [40, 57, 80, 120, 200].freeze

  # Verdict → first line of the text.
  def test_the_first_line_is_the_verdict
    {
      Measured.slower => "dirty is slower than main: 2.1% more wall time (99% interval: 1.4% … 2.8% more)",
      Measured.effect(:faster, [0.312, 0.3, 0.33]) => "dirty is 3.21 times faster than main: wall time 12.35 ms → " \
                                                      "3.852 ms (99% interval: 3.03 … 3.33 times)",
      Measured.effect(:slower, [2.4, 2.1, 2.9]) => "dirty is 2.40 times slower than main: wall time 12.35 ms → " \
                                                   "29.63 ms (99% interval: 2.10 … 2.90 times)",
      Measured.effect(:faster, [0.9, 0.89, 0.91]) => "dirty is faster than main: 10.0% less wall time (99% " \
                                                     "interval: 11.0% … 9.0% less)",
      Measured.effect(:same, [1.0005, 0.9962, 1.0041]) => "dirty is the same as main within 1%: equal wall time " \
                                                          "(99% interval: 0.4% less … 0.4% more)",
      Measured.effect(:slower, [1.004, 1.002, 1.006], below_margin: true) =>
        "dirty is really slower than main, but by less than 1%: 0.4% more wall time (99% interval: 0.2% … 0.6% more)",
      Measured.effect(:same, [1.004, 1.002, 1.006], below_margin: true) =>
        "dirty is really slower than main, but by less than 1%: 0.4% more wall time (99% interval: 0.2% … 0.6% more)",
      Measured.effect(:undecided, [1.009, 0.988, 1.031]) => "Undecided whether dirty is faster or slower than " \
                                                            "main: 0.9% more wall time (99% interval: " \
                                                            "1.2% less … 3.1% more)",
      Measured.effect(:undecided, [nil, nil, nil],
                      reason: "no steady state") => "Undecided whether dirty is faster or slower than main: " \
                                                    "wall time 12.35 ms → 3.000 ns"
    }.each { |effect, line| assert_equal line, text([effect], width: 200).lines.first.chomp }
  end

  def test_nothing_is_claimed_that_the_interval_does_not_carry
    [[1.05, 0.99, 1.2], [1.05, 1.0, 1.2], [1.05, nil, nil]].each do |ratio|
      report = Measured.comparison([Measured.effect(:slower, ratio)])
      [compare_text(report), compare_markdown(report)].each do |view|
        refute_match(/is (really )?slower|^join.*slower/, view)
        assert_match(/undecided/i, view)
      end
      assert_equal "undecided", JSON.parse(Show::CompareJson.new(report).to_s)["results"][0]["verdict"]
    end
  end

  def test_no_ratio_stands_without_its_interval
    view = text([Measured.effect(:undecided, [1.05, nil, nil])], width: 120)
    refute_includes view, "5.0%"
    assert_includes view, "none"
  end

  # A bound that is not 1 is never printed as 1.
  def test_a_bound_keeps_the_digits_that_tell_it_from_one
    view = text([Measured.effect(:slower, [1.0213, 1.00004, 1.0425])], width: 200)
    assert_includes view, "+0.004% … +4.250%"
  end

  def test_undecided_says_what_would_settle_it
    view = text([Measured.effect(:undecided, [1.009, 0.988, 1.031], smallest_detectable: 0.022)], width: 200)
    assert_includes view, "An effect of 2.2% would have been found 4 times in 5; about 93 more pairs (160 s: " \
                          "--budget 205) would settle it"
    view = text([Measured.effect(:undecided, [1.009, 0.988, 1.031],
                                 reason: "The host can't tell: it stole 12% of the time")], width: 200)
    assert_includes view, "The host can't tell: it stole 12% of the time"
    refute_includes view, "more pairs"
  end

  def test_a_hopeless_case_is_given_no_advice
    report = Measured.comparison([Measured.effect(:undecided, [1.0, 0.5, 2.0], smallest_detectable: 0.9)])
    assert_nil report.pairs_to_settle(report.effects.first)
    assert_nil report.pairs_to_settle(Measured.slower)
  end

  def test_many_cases_are_counted_first
    lines = text(many, width: 200).lines(chomp: true)
    assert_equal "dirty is slower than main in 1 of 6 cases, faster in 1, really different by less than 1% in 1, " \
                 "the same in 1, undecided in 2 (wall time)", lines.first
    assert_includes lines, "gone: undecided; no steady state: the last two windows differ by 7%"
    all_numbers.each { |part| assert_includes lines.join("\n"), part }
  end

  def test_each_side_has_its_verdict
    effects = [Measured.slower, Measured.effect(:faster, [0.9, 0.89, 0.91], side: "yjit")]
    view = text(effects, width: 120)
    assert_equal ["dirty is slower than main", "yjit is faster than main"],
                 view.lines.first(2).map { |line| line[/\A[^:]+/] }
    assert_includes view, "join n=100, yjit"
    assert_equal 3, view.lines.grep(/┃/).size
  end

  def test_counters_have_their_own_verdicts
    view = text([Measured.slower, Measured.exact(:more, 1204, 1210),
                 Measured.exact(:same, 48_160, 48_160, metric: "bytes"), Measured.exact(:more, 0, 3, metric: "gc_runs"),
                 Measured.effect(:undecided, [1.02, 0.97, 1.08], metric: "minor_faults", a: 12.3)], width: 100)
    assert_match(/^objects allocated +1,204 +1,210 +\+0\.5% +more, exact$/, view)
    assert_match(/^GC runs +0 +3 +– +more, exact$/, view)
    assert_match(/^page faults without IO +12\.30 +12\.55 +\+2\.0% +−3\.0% … \+8\.0% +undecided$/, view)
    assert_includes view, "same: bytes in heap slots (exact)"
  end

  def brief(effects, width:, **more)
    compare_text(Measured.comparison(effects, **more), width: width, details: false)
  end

  # Without --details the text has changes and doubts with their reasons. Unchanged counters, distributions and
  # settings are only shown with --details.
  def test_four_cases_fit_a_screen
    names = ["GET /orders", "GET /report", "POST /orders", "GET /"]
    walls = [Measured.effect(:faster, [0.2, 0.19, 0.22]), Measured.effect(:slower, [1.02, 1.01, 1.03]),
             Measured.effect(:undecided, [1.009, 0.988, 1.031], smallest_detectable: 0.022),
             Measured.effect(:undecided, [1.009, 0.958, 1.061], smallest_detectable: 0.04)]
    beside = names.flat_map do |name|
      [Measured.exact(:more, 1204, 1210, name: name),
       Measured.effect(:faster, [0.3, 0.28, 0.33], metric: "cpu", name: name),
       Measured.exact(:same, 5, 5, metric: "gc_runs", name: name),
       Measured.effect(:undecided, [1.02, 0.97, 1.08], metric: "minor_faults", a: 12.3, name: name)]
    end
    effects = walls.zip(names).each { |effect, name| effect.name = name }.map(&:first) + beside
    warnings = names.map { |name| Pitwall::Analyse::Warning.new(:gc, name, "GC takes 33% of the time",
                                                                "fewer objects make it faster") } + [Measured.warning]
    [80, 100].each do |width|
      view = brief(effects, width: width, warnings: warnings)
      assert_operator view.lines.size, :<=, 24, view
      said = view.gsub(/\s+/, " ")
      ["dirty is slower than main in 1 of 4 cases, faster in 1, undecided in 2 (wall time)",
       "POST /orders, GET /: undecided; effects of 2.2% … 4% would have been found 4 times in 5; up to",
       "would settle them", "GET /orders 12.35 ms 2.469 ms ×0.200 ×0.190 … ×0.220 faster",
       "beside it: objects allocated more in 4 of 4 (+0.5%); CPU time faster in 4 of 4 (×0.300)",
       "! GET /orders: GC takes 33% of the time (3 more like it); fewer objects make it faster",
       "! the host was busy: load 3.1 on 2 cores; --budget 120 measures longer",
       "--details shows the rest"].each { |part| assert_includes said, part }
      ["GC runs", "page faults", "Median of each", "3f2a1b9c0d11", "Again:"].each { |part| refute_includes said, part }
    end
    WIDTHS.each { |width| assert_fits(brief(effects, width: width, warnings: warnings), width) }
  end

  def test_one_case_keeps_its_distribution_and_what_changed
    view = brief([Measured.slower, Measured.exact(:more, 1204, 1210), Measured.exact(:same, 5, 5, metric: "gc_runs")],
                 width: 100)
    assert_match(/^objects allocated +1,204 +1,210 +\+0\.5% +more, exact$/, view)
    assert_includes view, "Median of each process"
    refute_includes view, "GC runs"
  end

  def test_what_changes_the_meaning_of_a_verdict_is_told_without_details
    alarm = { control: [Measured.effect(:slower, [1.03, 1.02, 1.04], side: "main")],
              settings: { "interrupted" => true, "metric" => "wall" }, losses: { "failed_processes" => 2 } }
    view = brief(many, width: 100, **alarm).gsub(/\s+/, " ")
    ["FALSE ALARM", "! Interrupted: this is what had been measured until then", "failed processes: 2",
     "gone: undecided; no steady state: the last two windows differ by 7%"].each do |part|
      assert_includes view, part
    end
    one = brief([Measured.effect(:undecided, [1.009, 0.988, 1.031], smallest_detectable: 0.022)], width: 200)
    assert_includes one, "An effect of 2.2% would have been found 4 times in 5; about 93 more pairs (160 s: " \
                         "--budget 205) would settle it"
  end

  def test_the_control_is_told
    same = text([Measured.slower], control: [Measured.effect(:same, [1.001, 0.996, 1.006], side: "main")], width: 200)
    assert_includes same, "A/A control (main against itself): no false alarm; 0.1% more wall time (99% interval: " \
                          "0.4% less … 0.6% more), same within 1%"
    control = [Measured.effect(:slower, [1.03, 1.02, 1.04], side: "main")]
    alarm = Measured.comparison([Measured.slower], control: control)
    assert_includes compare_text(alarm, width: 200), "FALSE ALARM"
    assert_match(/^> A\/A control .*FALSE ALARM/, compare_markdown(alarm))
  end

  def test_warnings_and_how_it_was_made_stand_below
    view = text([Measured.slower], warnings: [Measured.warning], losses: { "failed_processes" => 2 }, width: 200)
    ["! the host was busy: load 3.1 on 2 cores\n  --budget 120 measures longer",
     "24 pairs of fresh processes in random order", "41.2 s", "alpha 1%", "looks 6", "failed processes: 2",
     "an effect of 1.2% is found 4 times in 5", "revision 3f2a1b9c0d11", "AMD EPYC 7763",
     "Again:\npitwall compare --rev main --dirty benchmark/join.rb"].each { |part| assert_includes view, part }
  end

  # The verdict names the needed budget; the warning about a busy host then names no other one.
  def test_one_budget_is_advised
    samples = Measured.samples("join", { "main" => 12e6, "dirty" => 12.3e6 }, pairs: 7)
    report = Pitwall::Analyse::ComparisonReport.of(samples, cases: [], plans: { "join" => 9 },
                                                   sides: %w[main dirty].map { |name| Measured::Side.new(name, {}) },
                                                   settings: { "budget_s" => 40, "alpha" => 0.01, "margin" => 0.01 },
                                                   readings: { "others" => 0.5 }, duration_ns: 77_500_000_000)
    view = compare_text(report, width: 200)
    assert_includes view, "7 pairs: 8 are needed; --budget 90 would hold them"
    assert_includes view, "the host was busy: others used 50% of its CPU time\n  close what else runs\n"
    assert_equal ["--budget 90"], view.scan(/--budget \d+/)
  end

  def test_what_took_longer_than_its_budget_says_why
    effect = Measured.effect(:slower, [1.5, 1.4, 1.6], pairs: 8)
    assert_includes text([effect], duration_ns: 77_500_000_000, width: 200),
                    "77.5 s (the 8 pairs that are needed take longer than the budget) ·"
    refute_includes text([effect], width: 200), "than the budget"
    refute_includes text([Measured.slower], duration_ns: 77_500_000_000, width: 200), "than the budget"
  end

  def test_the_widths_are_kept
    hostile = many + [Measured.effect(:slower, [1.5, 1.4, 1.6], name: "x" * 300, side: "dirty", base: "main"),
                      Measured.exact(:more, 1, 2, name: "日本語" * 40)]
    WIDTHS.product([true, false]).each do |width, unicode|
      report = Measured.comparison(hostile, warnings: [Measured.warning("w" * 500)])
      view = compare_text(report, width: width, unicode: unicode)
      assert_fits(view, width, unicode: unicode)
    end
  end

  def test_all_numbers_are_there_at_any_width
    WIDTHS.each { |width| all_numbers.each { |part| assert_includes text(many, width: width), part } }
  end

  def test_names_can_be_nothing_but_text
    effect = Measured.effect(:slower, [1.5, 1.4, 1.6], name: "a\e[31m|`b`\n<img src=x> @you", side: "di\erty",
                             base: "ma\u202ein")
    report = Measured.comparison([effect], command: "pitwall compare -e 'a\nb' \e[2J",
                                 warnings: [Measured.warning("\e]0;x\a", "\e[1m")])
    [compare_text(report, width: 100), compare_markdown(report)].each do |view|
      refute_match(/[\e\a\u202e]/, view)
    end
    assert_equal effect.name, JSON.parse(Show::CompareJson.new(report).to_s)["results"][0]["name"]
  end

  def test_colours_are_the_palettes_and_change_no_column
    marked = Object.new
    %i[bold dim red yellow green cyan].each do |style|
      marked.define_singleton_method(style) { |text| "\e[1m#{text}\e[0m" }
    end
    [60, 100].each do |width|
      assert_equal text(many, width: width),
                   compare_text(Measured.comparison(many), width: width, palette: marked).gsub(/\e\[\d+m/, "")
    end
    seen = []
    spy = Object.new
    %i[bold dim red yellow green cyan].each do |style|
      spy.define_singleton_method(style) { |text| text.tap { seen << [style, text] } }
    end
    compare_text(Measured.comparison(many), width: 100, palette: spy)
    [[:red, "slower"], [:green, "faster"], [:dim, "same within 1%"], [:dim, "slower, below 1%"],
     [:yellow, "undecided"]].each do |pair|
      assert_includes seen, pair
    end
  end

  def test_the_command_can_be_pasted
    words = ["pitwall", "compare", "-e", "[1, 2].sum { |x| x }", "-e", "puts \"it's\"",
             *(1..20).map { |at| "--env=NAME#{at}=1" }]
    require "shellwords"
    view = Show::Provenance.new(width: 40, palette: Show::Plain).command(Shellwords.join(words)).join("\n")
    assert_operator view.lines.size, :>, 8
    assert_equal words, Shellwords.split(view.gsub("\\\n", ""))
  end

  def test_json_has_the_figures_whole
    control = [Measured.effect(:same, [1.0, 0.99, 1.01])]
    comparison = Measured.comparison(many, warnings: [Measured.warning], control: control)
    object = JSON.parse(Show::CompareJson.new(comparison).to_s)
    assert_equal "pitwall/compare-1", object["schema"]
    first = object["results"].first
    assert_equal({ "name" => "join n=100", "metric" => "wall", "unit" => "ns", "side" => "dirty", "base" => "main",
                   "verdict" => "slower", "exact" => false, "pairs" => 24, "better" => "lower",
                   "smallest_detectable" => 0.0123, "reason" => nil,
                   "ratio" => { "point" => 1.0213, "low" => 1.0141, "high" => 1.0284, "level" => 0.99 } },
                 first.slice("name", "metric", "unit", "side", "base", "verdict", "exact", "pairs", "better",
                             "smallest_detectable", "reason", "ratio"))
    assert_in_delta 12_345_678.0, first["a"]
    assert_equal %w[main dirty], object["samples"].first(2).map { |sample| sample["side"] }
    assert_equal 24, object["samples"].first["medians"].size
    assert_equal "busy_host", object["warnings"][0]["kind"]
    assert_equal 1, object["control"].size
    %w[host settings losses command duration_ns sides growth why].each { |key| assert_includes object.keys, key }
  end

  def test_json_has_null_for_what_is_no_number
    effect = Measured.effect(:undecided, [1.0, 0.9, 1.1], a: Float::NAN, smallest_detectable: Float::INFINITY)
    row = JSON.parse(Show::CompareJson.new(Measured.comparison([effect], host: { "load" => -Float::INFINITY },
                                                               samples: [])).to_s)
    assert_equal [nil, nil, nil], [row["results"][0]["a"], row["results"][0]["smallest_detectable"],
                                   row["host"]["load"]]
  end

  def test_markdown_is_a_verdict_a_table_and_details
    view = compare_markdown(Measured.comparison([Measured.slower, Measured.exact(:more, 1204, 1210)],
                                                warnings: [Measured.warning]))
    assert_equal "**dirty is slower than main**: 2.1% more wall time (99% interval: 1.4% … 2.8% more)",
                 view.lines.first.chomp
    assert_includes view, "| `join n=100` | 12.35 ms | 12.61 ms | +2.1% | +1.4% … +2.8% (99%) | slower |"
    assert_includes view, "> the host was busy"
    assert_match(/<details>.*objects allocated \| 1,204 \| 1,210 \| \+0\.5% \|  \| more, exact.*<\/details>/m, view)
    assert view.end_with?("```sh\npitwall compare --rev main --dirty benchmark/join.rb\n```")
  end

  def test_markdown_escapes
    effect = Measured.effect(:slower, [1.5, 1.4, 1.6], name: "a|b `c` <x>", side: "*s|ide*", base: "@you <b>")
    view = compare_markdown(Measured.comparison([effect], command: "x ```` y"))
    rows = view.lines.grep(/\A\|/)
    assert_equal [7], rows.map { |row| row.gsub(/\\\|/, "").count("|") }.uniq
    refute_match(/<x>[^`]*\||<b>|(?<!&#64;)@you/, view.lines.first)
    assert_includes view, "`````sh\nx ```` y\n`````"
  end

  def test_a_comparison_of_nothing_is_told
    report = Measured.comparison([], samples: [], sides: [], host: nil, settings: nil, warnings: nil, losses: nil,
                                 duration_ns: nil, command: nil)
    assert_includes compare_text(report), "Nothing was compared"
    assert_includes compare_markdown(report), "Nothing was compared"
    assert_equal [], JSON.parse(Show::CompareJson.new(report).to_s)["results"]
  end

  def test_why_stands_in_every_view
    change = Pitwall::Analyse::ProfileChange
    result = change::Result.new(weight: :wall, unit: :iteration, noise: :between_runs, level: 0.95, runs: [5, 5],
                                wholes: [[1], [1]], means: [1e7, 1.2e7], rows: [], tests: 3, detectable: 0.01,
                                notes: ["a note"], reason: nil)
    report = Measured.comparison([Measured.slower], why: { "dirty" => result })
    [80, 120].each { |width| assert_includes compare_text(report, width: width), "Why: " }
    assert_match(/<details>.*Why: .*<\/details>/m, compare_markdown(report))
    why = JSON.parse(Show::CompareJson.new(report).to_s)["why"][0]
    assert_equal ["main", "dirty", 0.01], why.values_at("base", "side", "smallest_detectable")
  end

  private

  def text(effects, width:, **more) = compare_text(Measured.comparison(effects, **more), width: width)

  def compare_text(report, **look) = Show::CompareText.new(report, hints: Pitwall::Views::Hints, **look).to_s

  def compare_markdown(report) = Show::CompareMarkdown.new(report, hints: Pitwall::Views::Hints).to_s

  def many
    [Measured.slower, Measured.effect(:same, [1.0005, 0.9962, 1.0041], name: "scan", a: 1234.5),
     Measured.effect(:undecided, [1.009, 0.988, 1.031], name: "parse", a: 3.02e6, smallest_detectable: 0.022),
     Measured.effect(:faster, [0.312, 0.3, 0.33], name: "sum", a: 31.25),
     Measured.effect(:slower, [1.004, 1.002, 1.006], name: "tiny", below_margin: true),
     Measured.exact(:more, 1204, 1210),
     Measured.exact(:same, 10, 10, name: "scan"),
     Measured.effect(:undecided, [nil, nil, nil], name: "gone",
                     reason: "no steady state: the last two windows differ by 7%")]
  end

  def all_numbers
    ["12.35 ms", "12.61 ms", "+2.1%", "+1.4% … +2.8%", "slower", "+0.0%", "−0.4% … +0.4%", "same within 1%",
     "−1.2% … +3.1%", "undecided", "31.25 ns", "9.750 ns", "×0.312",
     "×0.300 … ×0.330", "faster", "slower, below 1%", "1,204", "1,210", "more, exact"]
  end
end
