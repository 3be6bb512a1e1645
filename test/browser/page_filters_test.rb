# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_tree"
require "fileutils"
require "json"
require "open3"
require "pitwall/show"
require "pitwall/version"
require "pitwall/views"
require "tmpdir"

# The page's own filters, run in Node.js, against those of reports, on random recordings.
class PageFiltersTest < Minitest::Test
  TREES = 500
  Analyse = Pitwall::Analyse
  # Beside whole names: each rule by which a name finds methods.
  NAMES = [*RandomTree::NAMES, "sum", "#each", "Shop", "Rack", "rack", "puma", "gems/rack", "libc", "libc.so", "mem",
           "app/shop.rb", "a"].freeze
  WEIGHTS = %i[wall cpu captures].freeze

  def setup
    node = system("node --version", out: File::NULL, err: File::NULL)
    skip "peer absent: Node.js (apt-get install nodejs)" unless node
    @folder = Dir.mktmpdir
  end

  def teardown
    FileUtils.rm_rf(@folder) if @folder
  end

  def test_the_page_filters_as_reports_do
    lines = (0...TREES).map { |seed| JSON.generate(line(seed)) }
    out, status = Open3.capture2e("node", File.join(__dir__, "filters.mjs"), stdin_data: lines.join("\n"))
    assert status.success?, out[0, 4000]
    assert_equal "same #{TREES}\n", out
  end

  private

  def line(seed)
    random = Random.new(seed + 3_000_000)
    tree = RandomTree.new(seed)
    segments = tree.segments(@folder)
    native = random.rand(2).zero?
    shown = native ? segments : Analyse::NativeFrames.fold(segments)
    given = choose(random, tree, shown)
    weight = WEIGHTS.sample(random: random)
    found = report(shown, weight, given)
    filter = { thread: "all", state: "all", label: "", request: nil, gc: given[:gc] == :happened ? "" : given[:gc],
               blackbox: given[:blackbox], from: given[:time]&.first, to: given[:time]&.last }
    { page: page(segments), weight: weight, filter: filter, expected: table(found),
      asked: { native: native, focus: given[:focus], hide: given[:hide], only: given[:only].to_s },
      whole: found.whole, known: known(shown, given), said: "seed #{seed}, native #{native}: #{given}" }
  end

  def page(segments)
    data = Pitwall::Show::RecordingPage.new(segments, tabs: [], hints: Pitwall::Views::Hints).data
    data.to_s
  end

  def choose(random, tree, segments)
    methods = [nil, *segments.flat_map { |segment| segment.frames.values_at(*segment.node_frames.uniq).compact }.uniq]
    known = NAMES.select { |name| Analyse::MethodMatch.search(methods.map { |one| info(one) }, name).any? }
    some = ->(most) { random.rand(2).zero? || known.empty? ? [] : known.sample(random.rand(1..most), random: random) }
    whose = Analyse::Filters::ORIGINS + %w[rack puma]
    whose.select! { |one| one == "app" || kept?(segments, one) }
    { time: (range(random, tree) if random.rand(2).zero?), focus: some.call(2), hide: some.call(3),
      only: (whose.sample(random: random) if random.rand(2).zero?), blackbox: some.call(2),
      gc: %i[happened apart caller].sample(random: random) }
  end

  def info(frame)
    return Analyse::MethodInfo.new("", "", 0, 4) if frame.nil?

    Analyse::MethodInfo.new(frame.name, frame.path, frame.first_line, frame.kind)
  end

  def kept?(segments, only)
    Analyse::Filters.new(only: only).check(segments)
    true
  rescue Pitwall::UsageError
    false
  end

  # Also moments between two units.
  def range(random, tree)
    from = random.rand((tree.length + 1) * RandomTree::UNIT_NS)
    [from, random.rand(3).zero? ? nil : from + random.rand(1..20 * RandomTree::UNIT_NS)]
  end

  def report(segments, weight, given)
    range = given[:time] && Analyse::TimeRange.new(*given[:time])
    only = given[:only] unless given[:only] == "app"
    filters = Analyse::Filters.new(**given.slice(:focus, :hide), only: only, time: range)
    query = Analyse::Report::Query.new(
      weight: weight, filters: filters, threshold: 0.0, blackbox: given[:blackbox], gc: given[:gc],
      only_mine: given[:only] == "app"
    )
    Analyse::Report.new(filters.samples(segments), query)
  end

  def known(segments, given)
    methods = segments.flat_map { |segment| segment.frames.values_at(*segment.node_frames.drop(1).uniq) }.uniq
    methods = [info(nil), *methods.map { |frame| info(frame) }.uniq]
    [*given[:focus], *given[:hide]].map { |name| Analyse::MethodMatch.search(methods, name).size }
  end

  def table(report)
    rows = report.flat.select { |row| row.own.positive? || row.total.positive? }
    rows.to_h { |row| [[row.method.name, row.method.path, row.method.line].join("\t"), [row.own, row.total]] }
  end
end
