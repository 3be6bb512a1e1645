# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"
require "pitwall/record"
require "pitwall/analyse"
require "pitwall/cli"
require "json"
require "stringio"

# Counters of the VM's caches by request, job and test: exact for work that runs alone, unknown for work beside other work.
class WorkCountersTest < Minitest::Test
  include CommandLine

  PROGRAM = <<~'RUBY'
    require "pitwall"
    work = {
      "quiet" => -> { 3.times { [1].sum } },
      "classes" => -> { 5.times { Class.new { def a = 1 } } },
      "constants" => -> { 2.times { |i| Object.const_set("K#{i}", i) } },
      "variables" => -> { [Class.new(base = Class.new), base].each { |one| one.class_variable_set(:@@a, 1) } },
      "outer" => -> { Class.new; Pitwall.request(route: "inner") { 2.times { Class.new } } },
      "fibers" => -> { Fiber.new { Pitwall.request(route: "fiber") { Class.new } }.resume }
    }
    work.each { |name, code| Pitwall.request(route: name, &code) }
    at = Queue.new
    go = Queue.new
    threads = 2.times.map { |i| Thread.new { Pitwall.request(route: "beside#{i}") { at << 1; go.pop; Class.new } } }
    2.times { at.pop }
    2.times { go << 1 }
    threads.each(&:join)
    fibers = Array.new(ENV["MANY"].to_i) { Fiber.new { Pitwall.request(route: "many") { Fiber.yield } } }
    fibers.each(&:resume).each(&:resume)
    # Their ends never come.
    Thread.new { fibers.size.times { Fiber.new { Pitwall.request(route: "left") { Fiber.yield } }.resume } }.join
    GC.start
    Pitwall.request(route: "after") { Class.new }
  RUBY
  STAT = RubyVM.stat.keys.map(&:to_s)
  # Up to Ruby 3.1 a new class and its singleton class have new serials.
  SERIAL = "class_serial"

  def recorded(verb, env: {})
    File.write(file("work.rb"), PROGRAM)
    run = pitwall(verb, "--record", file("x.pit"), "--quiet", "--", RUBY, "-W0", "-I#{Checkout::ROOT}/lib", "work.rb",
                  env: env)
    assert_equal 0, run.status.exitstatus, run.err
    segments = Pitwall::Record.read(file("x.pit")).segments
    [Pitwall::Analyse::WorkCounters.new(segments), segments]
  end

  def view(name, format)
    out = StringIO.new
    Pitwall::CLI.run(["report", file("x.pit"), "--view", name, "--format", format], out: out, err: out)
    out.string
  end

  # Sums by route. More requests at once than there is room for are not counted. Requests that never end, because their
  # fibers are gone, are in the way of no other.
  def test_sums_of_a_profile
    counters, (segment, *) = recorded("profile", env: { "MANY" => "70" })
    assert_equal STAT.sort, counters.names.sort
    assert_equal Pitwall::Record::STAT_COUNTERS - STAT, counters.not_counted
    found = segment.work_counters.group_by { |sum| segment.labels(sum.label_id)["route"] }
    found.transform_values! { |sums| sums.to_h { |sum| [sum.name, sum.increase] } }
    assert_equal %w[after classes constants inner outer quiet variables], found.keys.sort
    assert_equal [STAT.sort], found.values.map { |sums| sums.keys.sort }.uniq
    assert_equal [0], found["quiet"].except("constant_cache_misses").values.uniq
    assert_operator found["variables"]["global_cvar_state"], :>=, 1
    return unless STAT.include?(SERIAL)

    assert_equal [10, 6, 4, 2], found.values_at("classes", "outer", "inner", "after").map { |sums| sums[SERIAL] }
    assert_equal 2, found["constants"]["global_constant_state"]
  end

  def test_requests_of_a_recording_of_caches
    counters, segments = recorded("caches")
    rows = Pitwall::Analyse::Requests.new(segments).rows
    found = rows.to_h { |row| [row.labels["route"], counters.of_request(row)] }
    own = Pitwall::Analyse::Caches::OWN.keys
    assert_equal own, counters.names - STAT
    assert_equal [0], found["quiet"].slice(*own).values.uniq
    assert_equal [5, 5], found["classes"].values_at("classes_made", "methods_changed")
    assert_equal 2, found["constants"]["constants_changed"]
    assert_equal [3, 2, 1, 1], found.values_at("outer", "inner", "beside0", "beside1").map { |one| one["classes_made"] }
    text = view("requests", "text")
    assert_match(/^request +took +began after .*methods .*classes/, text)
    assert_match(/not counted by this Ruby: #{counters.not_counted.first}/, text)
    rows = JSON.parse(view("requests", "json"))["requests"]
    assert_equal 5, rows.find { |row| row["labels"]["route"] == "classes" }["counters"]["classes_made"]
    assert_match(/methods: methods changed/, view("requests", "markdown"))
    values = JSON.parse(view("labels", "json"))["labels"]["values"].to_h { |row| row.values_at("value", "counters") }
    assert_equal [{ "works" => 1, "increase" => 5 }, { "works" => 1, "increase" => 0 }],
                 values.values_at("classes", "quiet").map { |one| one["classes_made"] }
    assert_equal [1, 0], values.values_at("classes", "beside0").map { |row| row.dig("global_cvar_state", "works").to_i }
    text = view("labels", "text")
    assert_match(/requests +mean .*methods +classes +route$/, text)
    assert_match(/^.* +5 +5 +classes$/, text)
  end

  def test_tests
    File.write(file("a_test.rb"), <<~RUBY)
      require "minitest/autorun"
      class ATest < Minitest::Test
        def test_makes = 3.times { Class.new { def a = 1 } }
        def test_quiet = assert([1].sum)
      end
    RUBY
    run = pitwall("caches", "--record", file("x.pit"), "--quiet", "--", RUBY, *gem_options("minitest"), "a_test.rb")
    assert_equal 0, run.status.exitstatus, run.err
    report = Pitwall::Analyse::Report.new(Pitwall::Record.read(file("x.pit")).segments)
    counts = report.tests.to_h { |row| [row.name, row.counters] }
    assert_equal [3, 3], counts.fetch("ATest#test_makes").values_at("classes_made", "methods_changed")
    assert_equal 0, counts.fetch("ATest#test_quiet")["classes_made"]
    assert_equal STAT.sort, (counts.fetch("ATest#test_makes").keys & STAT).sort
    assert_match(/^ +took +cpu +objects +gc .*methods +classes.* request +test/, view("tests", "text"))
    assert_match(/classes_made/, view("tests", "json"))
    assert_match(/methods: methods changed/, view("tests", "markdown"))
  end
end
