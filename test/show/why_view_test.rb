# frozen_string_literal: true

require "json"
require_relative "../test_helper"
require_relative "../support/simulated_profile"
require "pitwall/analyse"
require "pitwall/analyse/compare/profile_change"
require "pitwall/show"
require "pitwall/show/compare/why_json"
require "pitwall/show/compare/why_text"
require "pitwall/views/hints"

class WhyViewTest < Minitest::Test
  ProfileChange = Pitwall::Analyse::ProfileChange
  BOTH = { "Cart#sum" => 100, "Cart#tax" => 500 }.freeze

  def test_the_largest_change_is_told_in_a_sentence_and_all_in_a_table
    text = text(result({ "Cart#old" => 30 }, { "Cart#new" => 200 }, iterations: 1000))
    assert_match(%r{\AWhy:\ \+20\d\ µs/iteration\ in\ Cart\#new\ \(self\ 0%\ →\ 2\d\.\d%,\ not\ seen\ in\ main\),
                    \ mostly\ through\ Order\#total\ ←\ main$}x, text)
    lines = text.lines(chomp: true)
    assert_match(/\A +change +interval +main +topic +method\z/, lines[2])
    assert_match(/\A +\+20\d µs +\+1\d\d µs … \+2\d\d µs +– +2\d\.\d% +Cart#new +lib\/app\.rb:\d+\z/, lines[3])
    assert_equal "  ↳ through Order#total ← main", lines[4]
    assert_match(/−3\d\.\d µs +−\d\d\.\d µs … −\d\d\.\d µs +\d\.\d% +– +Cart#old/, lines[5])
    named = /self time of what is named changed by \+17\d µs/
    assert_match(/in these runs, #{named}, the whole by \+17\d µs, per iteration/, text)
    assert_match(/between 4 runs of each side; \d tests, corrected together \(Holm\)/, text.tr("\n", " ").squeeze(" "))
    refute_match(/faster|slower/, text)
  end

  def test_a_part_of_the_way_is_told_with_its_size
    way = lambda do |order|
      Array.new(4) do |run|
        [SimulatedProfile.segment([[%w[main Order#total Cart#sum], order + run], [%w[main Cart#sum], order / 2],
                                   [%w[main Cart#tax], 500]])]
      end
    end
    result = ProfileChange.compare(a: side(way.call(100), 1000), b: side(way.call(400), 1000))
    assert_includes text(result), "  ↳ +300 µs of it through Order#total ← main"
  end

  def test_nothing_changed_says_what_would_have_been_seen
    text = text(result({}, {}, iterations: 1000)).tr("\n", " ").squeeze(" ")
    assert_includes text, "Why: no method's part of the time changed beyond noise between main and topic"
    assert_match(/own change above \d+\.\d+% of the whole would have been seen in 4 of 5 cases/, text)
    refute_includes text, "interval"
  end

  def test_what_changed_only_by_what_it_calls
    sides = [2, 3].map do |each|
      Array.new(6) do |run|
        [SimulatedProfile.segment(Array.new(400) { |leaf| [["main", "Cart#fan", "Leaf#l#{leaf}"],
                                                           each] } + [[%w[main Cart#tax], 1000 + run]])]
      end
    end
    text = text(ProfileChange.compare(a: side(sides[0], 1), b: side(sides[1], 1)), per: "run")
    assert_match(%r{\AWhy: \+400 ms/run in Cart#fan \(with what it calls 44\.\d% → 54\.\d%\); no method's own time},
                 text)
    assert_match(/changed by what it calls$/, text)
  end

  def test_two_recordings_alone_give_no_verdict
    few = compare([visits(BOTH)], [visits(BOTH.merge("Cart#new" => 200))])
    text = text(few).tr("\n", " ").squeeze(" ")
    assert_match(/\ATime recorded: main 600 ms · topic 800 ms \(one run each: no verdict on which is faster\)/, text)
    assert_match(/\+200 ms of time in Cart#new \(self 0 ns → 200 ms, 0% → 25\.0%, not seen in main\)/, text)
    assert_includes text, "what differs from run to run is not in it"
    refute_match(/iteration|slower/, text)
  end

  # A method with a larger share of a shorter run didn't become slower.
  def test_a_share_that_moved_alone_is_no_headline
    result = compare([visits({ "Cart#sum" => 700, "Cart#tax" => 200 })],
                     [visits({ "Cart#sum" => 100, "Cart#tax" => 200 })])
    lines = text(result).lines(chomp: true)
    assert_match(/\AWhy: −600 ms of time in Cart#sum \(self 700 ms → 100 ms, 77\.8% → 33\.3%\)/, lines[1])
    assert_match(/\A +time +interval +main +topic +method\z/, lines.grep(/interval/).fetch(0))
    assert_match(/\A +alike +−\d+\.\d ms … \+\d+\.\d ms +22\.2% +66\.7% +Cart#tax/, lines.grep(/Cart#tax/).fetch(0))
    assert_match(/\A +time +interval +share +main +topic +method\z/,
                 text(result, width: 130).lines(chomp: true).grep(/interval/).fetch(0))
    assert_match(/alike .* \+44\.4 points +22\.2% +66\.7% +Cart#tax/, text(result, width: 130))
    assert_includes text(result), "alike: as long on both sides as far as noise and 3% can tell; " \
                                  "only its share of the whole moved"
    methods = Pitwall::Show::WhyJson.body(result, base: "main", side: "topic")["methods"]
    tax = methods.find { |method| method["name"] == "Cart#tax" }["self"]
    assert_equal [true, false], tax.values_at("changed", "time_changed")
    assert_operator tax["time"]["low_ns"], :<, 0
  end

  # A palette that prints the colour's name.
  PAINT = Module.new do
    %i[red green yellow bold dim cyan].each { |name| define_singleton_method(name) { |text| "<#{name}>#{text}" } }
  end

  # A method whose share grew only because others became faster is not red, in text and page.
  def test_a_share_that_moved_alone_has_no_colour
    result = compare([visits({ "Cart#sum" => 700, "Cart#tax" => 200 })],
                     [visits({ "Cart#sum" => 100, "Cart#tax" => 200 })])
    lines = Pitwall::Show::WhyText.new(width: 110, palette: PAINT, hints: Pitwall::Views::Hints)
                                  .lines(result, base: "main", side: "topic")
    rows = lines.grep(/Cart#\w+ +.*app\.rb/)
    assert_equal [true, false, false], [rows[0].include?("<green>"), rows[1].include?("<red>"),
                                        rows[1].include?("<green>")]
    view = Pitwall::Show::WhyText.new(width: 1000, palette: Pitwall::Show::Plain, hints: Pitwall::Views::Hints)
    table = view.parts(result, base: "main", side: "topic")["tables"].fetch(0)
    assert_equal ["method", "time", "interval", "main", "topic", "share, main", "share, topic"], table["heads"].first(7)
    sum, tax = table["rows"]
    assert_equal ["Cart#sum", { "text" => "−600 ms", "style" => "green" }, "700 ms", "100 ms", "77.8%", "33.3%"],
                 sum.values_at(0, 1, 3, 4, 5, 6)
    assert_equal ["Cart#tax", { "text" => "alike", "style" => nil }, "200 ms", "200 ms", "22.2%", "66.7%"],
                 tax.values_at(0, 1, 3, 4, 5, 6)
    new = result({}, { "Cart#new" => 200 }, iterations: 1000)
    per = view.parts(new, base: "main", side: "topic")["tables"].fetch(0)
    assert_equal "time/iteration", per["heads"][1]
    assert_equal ["red", "–"], [per["rows"][0][1]["style"], per["rows"][0][3]]
  end

  # The rest of the change is spread over too many methods to be detected.
  def test_only_shares_moved
    sides = [4, 1].map do |each|
      leaves = Array.new(500) { |leaf| [["main", "Leaf#l#{leaf}"], each] }
      [[SimulatedProfile.segment(leaves.flat_map { |leaf| [leaf, [%w[main Cart#tax], 2]] })]]
    end
    text = text(ProfileChange.compare(a: side(sides[0], nil), b: side(sides[1], nil))).tr("\n", " ").squeeze(" ")
    assert_includes text, "Why: not known: only shares moved, no method's time changed beyond noise; " \
                          "most in Cart#tax (self 33.3% → 66.7%)"
    assert_match(/alike/, text(ProfileChange.compare(a: side(sides[0] * 3, nil), b: side(sides[1] * 3, nil))))
  end

  def test_too_few_samples_to_see_anything
    text = text(compare([visits({ "Cart#sum" => 2 })],
                        [visits({ "Cart#sum" => 1, "Cart#tax" => 1 })])).tr("\n", " ").squeeze(" ")
    assert_includes text, "too few samples for any change to be seen"
    refute_match(/\d{3,}\.\d%/, text)
  end

  def test_several_threads_are_added_up
    thread = Struct.new(:id)
    one, two = [1, 2].map do |id|
      segment = visits(BOTH)
      tallies = segment.tallies.map do |tally|
        Pitwall::Record::Tally.new(thread.new(id).id, 0, 9).tap { |copy| tally.each { |*row| copy.add(*row) } }
      end
      segment.with(tallies: tallies)
    end
    both = one.with(tallies: one.tallies + two.tallies)
    assert_match(/\ATime recorded, all threads added up: /, text(compare([both], [both])))
  end

  def test_two_recordings_say_by_what_their_programs_differ
    warnings = lambda do |*heads|
      ProfileChange::Pair.warnings(heads.map { |head| [[SimulatedProfile.segment([[%w[main], 1]], **head)]] },
                                   %w[a.pit b.pit])
    end
    assert_equal [], warnings.call({ program: "x.rb" }, { program: "x.rb" })
    assert_equal ["different programs: a.pit x.rb, b.pit y.rb; a method of one of them only counts as new or gone"],
                 warnings.call({ program: "x.rb" }, { program: "y.rb" })
    assert_equal ["started with different options: a.pit none, b.pit --fast"],
                 warnings.call({ program: "x.rb", argv_options: [] }, { program: "x.rb", argv_options: ["--fast"] })
  end

  def test_two_checkouts_are_one_program
    sides = %w[/srv/one /home/me/two].map do |base|
      [[SimulatedProfile.segment([[%w[main Cart#sum], 200], [%w[loop Cart#tax], 50]], base: base)]]
    end
    assert_equal %w[/srv/one /home/me/two], ProfileChange::Pair.bases(sides)
    assert_equal [nil, nil], ProfileChange::Pair.bases([sides[0], sides[0]])
  end

  def test_a_reason_stands_alone
    result = compare([visits(BOTH)], [SimulatedProfile.segment([])])
    assert_equal "Why: not known, side B has a recording without any sample of what is compared", text(result)
    assert_equal [], Pitwall::Show::WhyJson.body(result, base: "A", side: "B")["methods"]
  end

  def test_more_than_fit_are_counted
    many = Array.new(20) { |at| ["Many#m#{at}", 100] }.to_h
    assert_includes text(result({}, many, iterations: 1000), limit: 5), "changed (--format json has all)"
  end

  def test_no_line_is_too_long_or_holds_a_command_to_the_terminal
    result = result({}, { "Evil#\e[2J#{"x" * 80}" => 200, "カート#合計" * 9 => 90 }, iterations: 1000)
    [60, 72, 100, 160].each do |width|
      text(result, width: width).each_line(chomp: true) do |line|
        assert_operator Pitwall::Show::Text.width(line), :<=, width, line
        refute_match(/\e|\s\z/, line)
      end
    end
  end

  def test_json_has_every_method_with_numbers_that_json_has
    result = result({ "Cart#old" => 30 }, { "Cart#new" => 200 }, iterations: 1000)
    body = JSON.parse(JSON.generate(Pitwall::Show::WhyJson.body(result, base: "main", side: "topic")))
    assert_equal ["ns", "between_runs", "holm", 0.95, [4, 4]],
                 body.values_at("unit", "noise", "correction", "level", "runs")
    assert_equal result.rows.map(&:name), body["methods"].map { |method| method["name"] }
    found = body["methods"].find { |method| method["name"] == "Cart#new" }
    assert_equal ["/app/lib/app.rb", "new"], found.values_at("file", "presence")
    assert_nil found["lines"].first
    assert found["self"]["changed"]
    assert_operator found["self"]["change"]["low"], :>, 0
    assert_equal 0, found["self"]["a_percent"]
    assert_equal "Order#total", found["callers"].first["name"]
  end

  private

  def text(result, width: 110, **options)
    Pitwall::Show::WhyText.new(width: width, palette: Pitwall::Show::Plain, hints: Pitwall::Views::Hints,
                               location: Pitwall::Show::Location.new("/app"), **options)
                          .lines(result, base: "main", side: "topic").join("\n")
  end

  # Four runs for each side, with little noise.
  def result(only_a, only_b, **options)
    compare(*[only_a, only_b].map { |only| Array.new(4) { |run| visits(BOTH.merge(only), run) } }, **options)
  end

  def compare(a, b, iterations: nil) = ProfileChange.compare(a: side(a.map { |segment| [segment] }, iterations),
                                                             b: side(b.map { |segment| [segment] }, iterations))

  def side(recordings, iterations) = ProfileChange::Side.new(recordings: recordings, iterations: iterations)

  def visits(counts, more = 0)
    list = counts.flat_map do |name, count|
      Array.new(count + more) { |at| [(at + 0.5) / count, ["main", "Order#total", name]] }
    end
    SimulatedProfile.segment(list.sort.map { |_, stack| [stack, 1] })
  end
end
