# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/fits"
require_relative "../support/measured"
require "json"
require "pitwall/analyse/compare/bench_report"
require "pitwall/analyse/allocations/growth"
require "pitwall/analyse/compare/sweep"
require "pitwall/show"
require "pitwall/show/bench/json"
require "pitwall/show/bench/markdown"
require "pitwall/show/bench/text"

class BenchViewsTest < Minitest::Test
  include Fits

  Show = Pitwall::Show
  Analyse = Pitwall::Analyse
  WIDTHS = [40, 57, 80, 120, 200].freeze

  def test_a_case_has_its_figures_at_any_width
    WIDTHS.each do |width|
      view = text(report, width: width)
      ["join", "interpolate", "12.0", "μs".tr("μ", "µ"), "/s ±", "99% interval", "objects", "12", "480 B", "GC runs",
       "GC time", "2%", "first run", "48.00 µs (×4.0)", "CPU", "98%",
       "3 cases", "10 processes each", "23.1 s",
       "ruby 3.4.11"].each { |part| assert_includes view.gsub(/\n +/, " "), part }
    end
  end

  def test_the_distribution_has_its_place_where_there_is_room
    assert_equal 3, text(report, width: 80).lines.grep(/┃/).size
    assert_empty text(report, width: 57).lines.grep(/┃/)
    assert_equal 3, text(report, width: 80, unicode: false).lines.grep(/[.:oO@]!/).size
  end

  def test_cases_are_held_against_each_other_fastest_first
    lines = text(report, width: 100).lines(chomp: true)
    from = lines.index { |line| line.start_with?("strings, fastest first") }
    assert_match(/\Ainterpolate .*reference\z/, lines[from + 1])
    assert_match(/\Ajoin .*\+33\.0% +\+31\.0% … \+35\.0% \(99%\) +slower\z/, lines[from + 2])
    assert_match(/\Anumber .* none +undecided\z/, lines[from + 3])
    assert_includes lines, "number against interpolate: undecided; no steady state"
  end

  def test_a_rare_count_has_a_bound
    assert_match(/GC runs ≤ 0\.0\d+/, text(report, width: 40))
  end

  def test_one_process_has_no_interval
    view = text(report(summaries: Analyse::BenchSummary.of(samples("join", 12_000.0, processes: 1)), effects: nil),
                width: 100)
    assert_match(/^join +83\.\d+ k\/s +1\d\.\d+ µs +none/, view)
  end

  def test_commands_have_best_and_median
    WIDTHS.each do |width|
      view = text(report(summaries: [command], effects: nil), width: width)
      ["ruby -e 1 (12 runs)", "best", "median", "wall time", "user CPU time", "system CPU time", "peak memory (RSS)",
       "page faults without IO", "context switches, voluntary", "exact",
       "44.00 ms", "45.10 ms", "┃"].each { |part| assert_includes view, part }
    end
  end

  def test_growth_has_sentence_table_and_plot
    view = text(report(growths: [sweep]), width: 80)
    assert_match(/^uniq: quadratic/, view)
    assert_match(/^ +n +time +99% interval +per item$/, view)
    assert_includes view, "both axes logarithmic"
    markdown = Show::BenchMarkdown.new(report(growths: [sweep])).to_s
    assert_match(/^\| 10,000 \| /, markdown)
    assert_match(/<details><summary>Plot<\/summary>\n\n```\n.*●.*```\n\n<\/details>/m, markdown)
  end

  Case = Struct.new(:name, :label, :block, :block_name, :params, :flags, keyword_init: true)

  def test_a_report_of_samples_has_what_the_file_asked_for
    sizes = [10, 20, 50, 100]
    grown = %w[array set].product(sizes).map do |label, n|
      kase = Case.new(name: "#{label} n=#{n}", label: label, block: 1, block_name: "uniq", params: { "n" => n.to_s },
                      flags: %w[compare growth growth:n])
      [kase, samples(kase.name, label == "array" ? 10.0 * n * n : 90.0 * n)]
    end
    plain = %w[join sum].map do |name|
      [Case.new(name: name, label: name, block: 0, block_name: "", params: {}, flags: %w[compare baseline]),
       samples(name, name == "join" ? 9_000.0 : 7_000.0)]
    end
    all = plain + grown
    report = Analyse::BenchReport.of(all.flat_map(&:last), cases: all.map(&:first),
                                     settings: { "alpha" => 0.01, "margin" => 0.01, "interrupted" => true },
                                     duration_ns: 1_000, command: "again")
    assert_equal all.map { |kase, _| kase.name }, report.summaries.map(&:name)
    assert_equal ["", *sizes.map { |n| "uniq n=#{n}" }], report.rankings.map(&:first)
    assert_equal [%w[sum join], [:faster, nil]],
                 # The first row is the baseline.
                 report.rankings.first.last.map { |row| [row.case.name, row.effect&.verdict] }.transpose
    sweep, = report.growths
    assert_equal [1, "uniq", "n", "array", "set"], [report.growths.size, sweep.name, sweep.parameter, sweep.base_name,
                                                    sweep.fit_name]
    assert_equal sizes, sweep.against.rows.map(&:n)
    view = text(report, width: 100)
    ["uniq n=10, fastest first", "speed-up", "! Interrupted"].each { |part| assert_includes view, part }
    assert_includes Show::BenchMarkdown.new(report).to_s, "> Interrupted"
  end

  def test_files_with_cases_of_the_same_name_are_told_apart
    kase = Case.new(name: "join", label: "join", block: 0, block_name: "", params: {}, flags: [])
    both = %w[one.rb two.rb].flat_map { |side| samples("join", 9_000.0).each { |sample| sample.side = side } }
    assert_equal ["join (one.rb)", "join (two.rb)"],
                 Analyse::BenchReport.of(both, cases: [kase, kase]).summaries.map(&:name)
  end

  def test_the_widths_are_kept
    hostile = Analyse::BenchSummary.of(samples("x" * 300, 5.0) + samples("日本語" * 30, 5e9) + samples("a\e[2J\nb", 5e3))
    reports = [report(summaries: hostile, warnings: [Measured.warning("w" * 400)]), report(growths: [sweep]),
               report(summaries: [command("ruby #{"y" * 300}")])]
    reports.product(WIDTHS, [true, false]).each do |one, width, unicode|
      view = text(one, width: width, unicode: unicode)
      assert_fits(view, width, unicode: unicode)
    end
  end

  def test_colours_change_no_column
    marked = Object.new
    %i[bold dim red yellow green cyan].each do |style|
      marked.define_singleton_method(style) { |text| "\e[1m#{text}\e[0m" }
    end
    [57, 100].each do |width|
      coloured = Show::BenchText.new(report(growths: [sweep]), width: width, palette: marked).to_s
      assert_equal text(report(growths: [sweep]), width: width), coloured.gsub(/\e\[\d+m/, "")
    end
  end

  def test_json_has_the_figures_whole
    object = JSON.parse(Show::BenchJson.new(report(growths: [sweep], summaries: summaries + [command])).to_s)
    assert_equal "pitwall/bench-1", object["schema"]
    wall = object["results"].find { |row| row["name"] == "join" && row["metric"] == "wall" }
    assert_nil wall["b"]
    assert_in_delta 12_000, wall["a"], 100
    joined = object["results"].find { |each| each["name"] == "join" && each["metric"] == "objects" }
    assert_equal [true, 12, "count"], joined.values_at("exact", "a", "unit")
    one = object["cases"].find { |row| row["name"] == "join" }
    assert_equal %w[point low high level], one["wall"].keys
    assert_in_delta 1e9 / one["wall"]["point"], one["ips"]["point"], 0.01
    assert_equal [48_000.0, 10, false], one.values_at("first_ns", "processes", "command")
    assert_equal 10, object["samples"].find { |row| row["name"] == "join" }["medians"].size
    assert_equal ["quadratic", 7], [object["growth"][0]["order"], object["growth"][0]["points"].size]
    assert_equal ["join", "interpolate", "slower"], object["comparisons"][0].values_at("side", "base", "verdict")
    %w[host settings losses warnings duration_ns command].each { |key| assert_includes object.keys, key }
  end

  def test_markdown_tables_have_whole_rows
    summaries = Analyse::BenchSummary.of(samples("a|b `c`", 5.0)) + [command("sh -c 'a | b'")]
    view = Show::BenchMarkdown.new(report(summaries: summaries, effects: nil)).to_s
    view.split("\n\n").select { |part| part.start_with?("|") }.each do |table|
      assert_equal 1, table.lines.map { |row| row.gsub("\\|", "").count("|") }.uniq.size, table
    end
    assert_includes view, "`` a\\|b `c` ``"
    assert_includes view, "> the host was busy"
    assert view.end_with?("```sh\npitwall bench benchmark/strings.rb\n```")
  end

  def test_nothing_measured_is_told
    empty = Analyse::BenchReport.new(summaries: [])
    assert_equal "Nothing was measured", text(empty, width: 80)
    assert_equal "**Nothing was measured**", Show::BenchMarkdown.new(empty).to_s
    assert_equal [], JSON.parse(Show::BenchJson.new(empty).to_s)["cases"]
  end

  private

  def text(report, width:, unicode: true) = Show::BenchText.new(report, width: width, unicode: unicode).to_s

  def report(**more)
    effects = [Measured.effect(:slower, [1.33, 1.31, 1.35], name: "strings", base: "interpolate", side: "join"),
               Measured.effect(:undecided, [nil, nil, nil], name: "strings", base: "interpolate", side: "number",
                               reason: "no steady state")]
    Analyse::BenchReport.new(
      name: "benchmark/strings.rb", facts: { "ruby" => "ruby 3.4.11 (2026-10-02) [x86_64-linux-gnu]" },
      summaries: summaries, effects: effects, growths: nil,
      settings: { "processes" => 10 }, host: { "cores" => 2 }, warnings: [Measured.warning], losses: {},
      duration_ns: 23_100_000_000, command: "pitwall bench benchmark/strings.rb", **more
    )
  end

  def summaries
    @summaries ||= Analyse::BenchSummary.of(samples("join", 12_000.0) + samples("interpolate", 9_000.0) +
                                            samples("number", 23_000.0))
  end

  def samples(name, middle, processes: 10)
    random = Random.new(3)
    Array.new(processes) do |block|
      wall = Array.new(30) { middle * (1 + 0.03 * (random.rand - 0.5)) }
      values = { "wall" => wall, "cpu" => wall.map { |value| value * 0.98 }, "objects" => [12] * 30,
                 "bytes" => [480] * 30, "gc_time" => wall.map { |value| value * 0.02 },
                 "gc_runs" => Array.new(30) { |at| block == 2 && at == 4 ? 1 : 0 } }
      Pitwall::Record::Sample.new(side: "", name: name, block: block, order: 0, values: values, iterations: 3_000,
                                  first_ns: 48_000, warmup: 100, notes: [])
    end
  end

  def command(name = "ruby -e 1")
    runs = Array.new(12) do |block|
      wall = 44_000_000 + block * 200_000
      values = { "wall" => wall, "user" => wall * 0.7, "system" => wall * 0.2, "max_rss" => 31_000_000 + block,
                 "minor_faults" => 3_000 + block % 3, "voluntary_switches" => 12 }
      Pitwall::Record::Sample.new(side: "", name: name, block: block, order: 0,
                                  values: values.transform_values { |value| [value] }, iterations: 1, notes: [])
    end
    Analyse::BenchSummary.of(runs).first
  end

  def sweep
    @sweep ||= begin
      random = Random.new(5)
      points = [10, 30, 100, 300, 1_000, 3_000, 10_000].map do |n|
        { n: n, values: Array.new(10) { (2_000 + 30.0 * n * n) * (1 + 0.01 * (random.rand - 0.5)) } }
      end
      Analyse::Sweep.new(name: "uniq", parameter: "n", fit: Analyse::Growth.fit(points))
    end
  end
end
