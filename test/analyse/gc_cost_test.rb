# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require "pitwall/analyse"
require "pitwall/show"
require "pitwall/views/hints"

class GCCostTest < Minitest::Test
  Totals = Struct.new(:allocated)

  MAIN = ["Object#main", "/app/a.rb", 1, 3].freeze
  COPY = ["Task#copy", "/app/task.rb", 10, 12].freeze
  CLONE = ["Kernel#clone", "", 0, 0, 1].freeze
  QUOTE = ["Task#quote", "/app/task.rb", 20, 21].freeze
  MARKING = ["(marking)", "", 0, 0, 2].freeze
  OTHER = ["Object#other", "/app/a.rb", 30, 31].freeze

  def site(id, node, class_name, count, slot_bytes, bytes, gc_ns)
    values = { id: id, node: node, type: 5, class_name: class_name, count: count, slot_bytes: slot_bytes, bytes: bytes,
               gc_ns: gc_ns }
    Pitwall::Record::Site.new(*Pitwall::Record::Site.members.map { |name| values[name] })
  end

  # Elapsed 2 s. Copying: 300 ms own time with clone, 200 ms in quoting. Elsewhere: 100 ms.
  # GC: 400 ms, of which 300 ms are charged to copying.
  def cost(allocated: 1_000, stacks: true, **options)
    nodes = {}
    bytes = RecordingBuilder.build do |segment|
      segment.thread 1, "main"
      segment.row stack: [MAIN, COPY], wall: 100_000, cpu: 90_000, captures: 100
      segment.row stack: [MAIN, COPY, CLONE], wall: 200_000, cpu: 200_000, captures: 200
      segment.row stack: [MAIN, COPY, QUOTE], wall: 200_000, cpu: 200_000, captures: 200
      segment.row stack: [MAIN, COPY, CLONE, MARKING], wall: 400_000, cpu: 400_000, captures: 400
      segment.row stack: [MAIN, OTHER], wall: 100_000, cpu: 100_000, captures: 100
      nodes[:copy] = segment.node(stacks ? [MAIN, COPY, CLONE] : [COPY])
      nodes[:quote] = segment.node(stacks ? [MAIN, COPY, QUOTE] : [QUOTE])
      nodes[:other] = segment.node([OTHER])
      40.times { |n| segment.collection(start: n * 50_000_000, marking: 10_000_000) }
    end
    segment = RandomRecording.read(bytes).segments.first
    sites = [site(1, 0, "", 100, 4_000, 4_000, 40_000_000), site(4, 0, "", 0, 0, 0, 0),
             site(5, nodes[:copy], "String", 500, 20_000, 60_000, 200_000_000),
             site(6, nodes[:copy], "Array", 100, 4_000, 4_000, 0),
             site(7, nodes[:quote], "String", 250, 10_000, 10_000, 100_000_000),
             site(8, nodes[:other], "Hash", 50, 2_000, 2_000, 60_000_000)]
    yield sites if block_given?
    segment.define_singleton_method(:sites) { sites }
    segment.define_singleton_method(:allocation_totals) { Totals.new(allocated) }
    Pitwall::Analyse::GCCost.new([segment], **options)
  end

  def test_lines_with_own_time_and_the_collection_they_cause
    rows = cost.rows
    assert_equal [["/app/task.rb", 12], ["/app/task.rb", 21], ["/app/a.rb", 31]],
                 rows.map { |row| [row.path, row.line] }
    assert_equal [[300, 200, 500], [200, 100, 300], [100, 60, 160]],
                 rows.map { |row| [row.own_ns, row.gc_ns, row.together_ns].map { |ns| ns / 1_000_000 } }
    assert_equal [[600, 64_000, %w[String Array]], [250, 10_000, ["String"]], [50, 2_000, ["Hash"]]],
                 rows.map { |row| [row.objects, row.bytes, row.classes] }
    assert_equal %w[Task#copy Task#quote Object#other], rows.map { |row| row.method.name }
    assert_equal 360_000_000, cost.charged_ns
    assert_equal [2_000_000_000, 400_000_000], [cost.wall_ns, cost.gc_ns]
    assert_equal 290, cost(weight: :cpu).rows.first.own_ns / 1_000_000
  end

  # Sites without a place have no line. Their objects are not the program's, or nobody knows where they came from.
  def test_only_places_have_lines
    special = Pitwall::Record::Site::NAMES.keys
    rows = cost { |sites| special.each { |id| sites << site(id, sites[2].node, "String", 7, 7, 7, 7_000_000) } }.rows
    assert_equal 900, rows.sum(&:objects)
    assert_equal([1, 2, 3, 4], special)
    places = (0..6).select { |id| site(id, 0, "", 0, 0, 0, 0).place? }
    assert_equal [5, 6], places
    assert_empty(places.map { |id| site(id, 0, "", 0, 0, 0, 0).special }.compact)
    assert_equal [3, 5, 6], (0..6).select { |id| site(id, 0, "", 0, 0, 0, 0).program? }
  end

  def test_a_prediction_is_own_time_with_all_that_is_called_and_collections_avoided
    ["task.rb:12", "/app/task.rb:12", "Task#copy", "copy"].each do |place|
      prediction = cost.predict(place)
      assert_equal [500, 300, 800].map { |ms| ms * 1_000_000.0 },
                   [prediction.own, prediction.gc, prediction.saving].map(&:point)
      assert_equal [30.0, 40, 10_000_000], [prediction.runs.point, prediction.all_runs, prediction.cost_ns]
      assert_equal [850, 74_000], [prediction.objects, prediction.bytes]
      assert_in_delta 0.4, prediction.share
    end
    assert_equal [200, 100],
                 [cost.predict("quote").own, cost.predict("task.rb:21").gc].map { |part| part.point.round / 1_000_000 }
  end

  def test_its_interval_holds_the_doubts_and_is_narrow_enough
    saving = cost.predict("task.rb:12").saving
    assert_operator saving.low, :<, saving.point
    assert_in_delta saving.point - saving.low, saving.high - saving.point
    assert_operator saving.high - saving.point, :<, 0.3 * saving.point
    doubts = cost.predict("task.rb:12").doubts
    # 500 of 1,000 samples at 1 ms. All GC runs cost the same, so only their number is uncertain. No object was sampled.
    assert_in_delta Math.sqrt(500 * 0.5) * 1e6, doubts[:samples], 1
    assert_in_delta Math.sqrt(10e6**2 / 6), doubts[:collections], 1
    assert_equal 0, doubts[:followed]
    wider = cost.predict("task.rb:12", level: 0.99).saving
    assert_operator wider.high, :>, saving.high
  end

  # The formula is compared with many random draws of the k of N runs that are avoided.
  def test_the_spread_of_collections_against_draws
    random = Random.new(5)
    costs = Array.new(60) { (1 + random.rand * 9) * 1_000_000 }
    bytes = RecordingBuilder.build do |segment|
      costs.each_with_index { |ns, at| segment.collection(start: at * 20_000_000, marking: ns.round) }
    end
    timeline = Pitwall::Analyse::GCTimeline.new(RandomRecording.read(bytes).segments)
    part = Pitwall::Analyse::GCPrediction::Followed.new(timeline.total_ns / 3.0, 1, 1, 0, 0, false, 0)
    said = Pitwall::Analyse::GCPrediction.of("x", [], [part], timeline, weight: :wall, level: 0.95).doubts[:collections]
    sums = Array.new(4000) { costs.sample(20, random: random).sum }
    mean = sums.sum / sums.size
    drawn = Math.sqrt(sums.sum { |sum| (sum - mean)**2 } / sums.size)
    rounding = (costs.sum / costs.size)**2 / 6
    assert_in_delta Math.sqrt(drawn**2 + rounding), said, said * 0.05
  end

  def test_sampled_objects_are_scaled_and_doubted
    sampled = cost(allocated: 512_000) do |sites|
      sites.each { |site| site.gc_ns = site.gc_ns * 9 / 10 }
      sites[1].gc_ns = 40_000_000
    end
    assert sampled.sampled?
    prediction = sampled.predict("task.rb:12")
    assert_equal 850 * 512, prediction.objects
    # Runs that are charged to no site are divided like the others.
    assert_in_delta 300e6, prediction.gc.point, 1
    assert_operator prediction.doubts[:followed], :>, 0
    refute cost.sampled?
  end

  def test_times_come_from_the_recording_that_followed_no_objects
    slow = cost.instance_variable_get(:@segments)
    followed = slow.first
    followed.header.fields["collectors"] = ["allocations"]
    assert Pitwall::Analyse::GCCost.new([followed]).disturbed?
    bytes = RecordingBuilder.build do |segment|
      segment.row stack: [MAIN, COPY, CLONE], wall: 100_000, cpu: 50_000, captures: 100
      segment.row stack: [MAIN, COPY, MARKING], wall: 80_000, cpu: 40_000, captures: 80
      10.times { |n| segment.collection(start: n * 50_000_000, marking: 8_000_000) }
    end
    plain = RandomRecording.read(bytes).segments.first
    both = Pitwall::Analyse::GCCost.new([plain, followed])
    refute both.disturbed?
    # Three quarters of the collection time are charged there: 300 of 400 ms.
    assert_equal [100, 60, 10],
                 [both.predict("copy").own.point / 1e6, both.predict("copy").gc.point / 1e6,
                  both.predict("copy").all_runs]
    # The CPU time was half of it.
    cpu = Pitwall::Analyse::GCCost.new([plain, followed], weight: :cpu)
    assert_equal [50, 30, 4_000_000],
                 [cpu.predict("copy").own.point / 1e6, cpu.predict("copy").gc.point / 1e6, cpu.predict("copy").cost_ns]
  end

  def test_without_stacks_only_the_line_itself_is_charged
    assert cost.stacks?
    single = cost(stacks: false)
    refute single.stacks?
    assert_equal 200_000_000, single.predict("task.rb:12").gc.point
    assert_equal 300, single.rows.first.own_ns / 1_000_000
  end

  def test_without_samples_own_time_is_not_known
    bytes = RecordingBuilder.build(mode: "none") do |segment|
      segment.collection(marking: 10_000_000)
      segment.site 5, stack: [COPY], counters: [10, 0, 10, 0, 0, 0, 400, 400, 0, 9_000_000]
    end
    untimed = Pitwall::Analyse::GCCost.new(RandomRecording.read(bytes).segments)
    prediction = untimed.predict("copy")
    assert_nil prediction.own
    json = JSON.parse(JSON.generate(Pitwall::Show::GCCostJson.new(untimed, prediction: prediction).to_h))
    assert_equal [nil, nil], json["lines"].first.values_at("own_ns", "together_ns")
    assert_nil json["prediction"]["own_ns"]
    location = Pitwall::Show::Location.new(nil)
    view = Pitwall::Show::GCCostView.new(width: 100, palette: Pitwall::Show::Plain, location: location,
                                         hints: Pitwall::Views::Hints)
    text = view.lines(untimed, prediction: prediction).join("\n")
    assert_match(/own time: not known, no samples were taken/, text)
  end

  def test_ruby_s_own_lines_count_for_their_caller
    bytes = RecordingBuilder.build do |segment|
      segment.row stack: [MAIN, COPY, ["Kernel#clone", "<internal:kernel>", 1, 49]], wall: 1000
      segment.row stack: [["Kernel#loop", "<internal:kernel>", 1, 187]], wall: 500
    end
    segment = RandomRecording.read(bytes).segments.first
    sites = [site(5, 3, "String", 7, 0, 0, 0), site(6, 4, "Array", 1, 0, 0, 0)]
    segment.define_singleton_method(:sites) { sites }
    rows = Pitwall::Analyse::GCCost.new([segment]).rows
    assert_equal [["/app/task.rb", 12, 1_000_000, 7], ["<internal:kernel>", 187, 500_000, 1]],
                 rows.map { |row| [row.path, row.line, row.own_ns, row.objects] }
  end

  def test_mistakes_are_one_line
    assert_includes problem { cost.predict("task.rb:99") },
                    "task.rb:99 neither ran in a sample nor allocates in this recording; " \
                    "of that file, task.rb:12, task.rb:21 cost most"
    assert_match(/no line \(PATH:LINE\) or method "nothing" in the recording/, problem { cost.predict("nothing") })
    assert_match(/no places of allocation.*profile --allocations/, problem { cost(&:clear).predict("task.rb:12") })
  end

  def problem(&block) = assert_raises(Pitwall::UsageError, &block).message.tap { |text| refute_includes text, "\n" }

  def test_the_views
    [60, 80, 120].each do |width|
      text = view(cost, width, prediction: cost.predict("task.rb:12"))
      text.each { |line| assert_operator Pitwall::Show::Text.width(line), :<=, width, line }
      ["Removing task.rb:12 would save 800 ms (95%: ", "40.0% of the wall time. A model", "30 of 40 runs × 10.0 ms",
       "no longer allocated: 850 objects, 72.3 KiB",
       "charged 360 ms of it",
       "a model: each run's time"].each { |part| assert_includes text.join("\n").gsub(/\n */, " "), part }
    end
    assert_match(%r{^ +500 ms +300 ms +200 ms +600  62\.5 KiB  String, Array  /app/task\.rb:12$},
                 view(cost, 100).join("\n"))
    assert_match(/^ +500 ms +300 ms +200 ms .*task\.rb:12$/, view(cost, 60).join("\n")) # bytes give way to the line
    text = view(cost(&:clear), 100).join(" ")
    assert_match(/\Ano places of allocation were recorded: pitwall profile --allocations -- CMD, or /, text)
    assert_match(/ -- CMD, or .*allocations --stacks -- CMD/, text)
  end

  def view(cost, width, **options)
    location = Pitwall::Show::Location.new
    view = Pitwall::Show::GCCostView.new(width: width, palette: Pitwall::Show::Plain, location: location,
                                         hints: Pitwall::Views::Hints)
    view.lines(cost, **options)
  end

  # 1.5 s of CPU time. Samples have 590 ms of own time, and GC has 400 ms.
  def test_shares_are_of_the_weight_that_is_named
    cpu = cost(weight: :cpu)
    prediction = cpu.predict("task.rb:12")
    assert_equal [1_500_000_000, 2_000_000_000], [cpu.whole_ns, cost.whole_ns]
    assert_in_delta 790 / 1500.0, prediction.share, 1e-6
    text = view(cpu, 200, prediction: prediction).join("\n")
    ["52.7% of the CPU time. A model", "took 400 ms of 1.50 s CPU time;"].each { |part| assert_includes text, part }
    assert_includes view(cost, 200).join("\n"), "took 400 ms of 2.00 s wall time;"
  end

  def test_json
    object = Pitwall::Show::GCCostJson.new(cost, prediction: cost.predict("Task#copy")).to_h
    assert_equal [400_000_000, 360_000_000, false], object.values_at("gc_ns", "charged_ns", "sampled")
    assert_equal({ "path" => "/app/task.rb", "line" => 12, "own_ns" => 300_000_000, "gc_ns" => 200_000_000 },
                 object["lines"].first.slice("path", "line", "own_ns", "gc_ns"))
    assert_equal 800_000_000, object["prediction"]["saving_ns"]["point"]
    assert_equal %w[collections followed heap model samples], object["prediction"]["doubts_ns"].keys.sort
  end
end
