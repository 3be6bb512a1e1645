# frozen_string_literal: true

require "json"
require_relative "../test_helper"
require_relative "../support/command_line"
require_relative "../support/fits"
require_relative "../support/recording_builder"

# Programs of which it is known what stays and keeps growing. They run until a given number of collections have begun,
# because collections are when objects are counted. Nothing is judged by time.
class GrowthCommandTest < Minitest::Test
  include CommandLine

  PLANTED = File.expand_path("../fixtures/planted", __dir__)
  # Work in rounds, until there have been enough full and other collections.
  ROUNDS = <<~RUBY
    def garbage = Array.new(300) { |i| "garbage \#{i}" }
    def rounds(most = 400)
      round = 0
      while round < most
        yield round += 1
        garbage
        round % 5 == 0 ? GC.start : GC.start(full_mark: false)
        sleep 0.003
      end
      round
    end
  RUBY

  def record(program, *options, name: "x.pit", ruby: [])
    File.write(file("program.rb"), ROUNDS + program)
    command = ["--", RUBY, "--disable-gems", *ruby, "program.rb"]
    result = pitwall("allocations", "--growth", "--record", file(name), *options, *command)
    assert_equal 0, result.status.exitstatus, result.err
    result
  end

  def growth(*options, name: "x.pit")
    shown = pitwall("report", file(name), "--view", "growth", "--format", "json", *options)
    assert_equal 0, shown.status.exitstatus, shown.err
    JSON.parse(shown.out)
  end

  def lines(object) = object["sites"].map { |site| [File.basename(site["path"]), site["line"], site["class"]] }

  def line_of(text) = File.read(file("program.rb")).lines.index { |line| line.include?(text) } + 1

  LEAK = <<~RUBY
    KEEP, FULL, SAW = [], {}, []
    done = rounds do |round|
      10.times { |i| KEEP << "leak \#{round} \#{i}" }
      30.times { |i| FULL[(round * 30 + i) % 600] = "cache \#{i}" }
      SAW << "saw \#{round}" * 3; SAW.clear if SAW.size > 25
    end
  RUBY

  def test_a_leak_beside_a_cache_and_a_sawtooth
    record(LEAK)
    object = growth
    assert object["judged"]
    assert_equal [["program.rb", line_of("leak"), "String"]], lines(object)
    site = object["sites"][0]
    assert_equal 4000, site["living_objects"]
    assert_equal 4000, site["living"].last[1]
    points = object["processes"][0]["points"]
    assert_equal points, site["living"].size
    assert_operator site["objects"], :<=, 4000
    assert_operator site["objects"], :>=, 4000 / 2, "three quarters of the time, at least half of the rounds"
    assert(site["living"].all? { |_, low, high| low <= high })
    assert_equal site["living"].map(&:last).sort, site["living"].map(&:last), "nothing of it is freed"
    assert_operator object["processes"][0]["rss"].size, :>, 20
    assert_equal "growth", object["findings"][0]["kind"]
    assert_match(/objects from .*program\.rb:#{line_of("leak")} stay and keep growing: [\d,]+ a minute/,
                 object["findings"][0]["text"])
    assert_match(/--view growth\z/, object["findings"][0]["more"])
  end

  def test_nothing_grows
    record(LEAK.sub("KEEP <<", "KEEP[i] ="))
    object = growth
    assert object["judged"]
    assert_empty lines(object)
    assert_empty(object["findings"].select { |finding| finding["kind"] == "growth" })
    assert_match(/^No place's objects keep growing\.$/, pitwall("report", file("x.pit"), "--view", "growth").out)
  end

  # As the local variables of the main program.
  def test_a_leak_that_is_let_go_of_at_the_end
    record("KEPT = []\nat_exit { KEPT.clear }\nrounds { |round| 10.times { |i| KEPT << \"leak \#{round}\" } }\n")
    object = growth
    assert_equal [["program.rb", line_of("leak"), "String"]], lines(object)
    assert object["sites"][0]["released"]
  end

  def test_forked_children_and_threads
    record(<<~RUBY)
      KEEP = []
      # First, because a process that waits at the end does not grow then.
      Process.wait(fork { rounds { |round| 10.times { KEEP << "child \#{round}" } } })
      threads = Array.new(3) { |n| Thread.new { rounds(130) { |round| 10.times { KEEP << "thread \#{round}" } } } }
      threads.each(&:join)
    RUBY
    object = growth
    assert_equal 2, object["processes"].size
    found = object["sites"].to_h { |site| [site["line"], site["living_objects"]] }
    assert_equal({ line_of("child") => 4000, line_of("thread") => 3900 }, found)
  end

  # One of some is followed; what is shown stands for all.
  def test_samples
    record(LEAK, "--sample", "1/5")
    object = growth
    assert_equal [["program.rb", line_of("leak"), "String"]], lines(object)
    assert_in_delta 4000, object["sites"][0]["living_objects"], 600
  end

  def test_compaction
    skip "this Ruby does not compact" unless GC.respond_to?(:compact)
    record(LEAK.sub("30.times", "GC.compact if round % 40 == 0; 30.times"))
    object = growth
    assert_equal [["program.rb", line_of("leak"), "String"]], lines(object)
    assert_equal 4000, object["sites"][0]["living_objects"]
  end

  def test_stress
    record("GC.stress = true\nKEEP = []\n2000.times { |i| KEEP << \"stress \#{i}\" }\nGC.stress = false\n")
    object = growth
    assert_equal [["program.rb", line_of('"stress'), "String"]], lines(object)
    assert_in_delta 2000, object["sites"][0]["living_objects"], 2
  end

  # A killed process leaves what was flushed.
  def test_a_killed_process
    File.write(file("program.rb"), ROUNDS + <<~'RUBY')
      KEEP = []
      rounds { |round| 10.times { KEEP << "leak #{round}" } }
      puts :done
      $stdout.flush
      sleep 3
      Process.kill(:KILL, $$)
    RUBY
    pitwall("allocations", "--growth", "--record", file("x.pit"), "--", RUBY, "--disable-gems", "program.rb")
    object = growth
    assert_equal [["program.rb", line_of("leak"), "String"]], lines(object)
  end

  def test_too_few_collections_are_said
    result = record("a = 1\n")
    assert_match(/too few collections after warm-up/, result.err)
    assert_match(/^Whether objects keep growing is not known\.$/, result.err)
  end

  def test_text_and_markdown
    result = record(LEAK)
    assert_match(/^objects\/min +bytes\/min +grew by/, result.err)
    assert_match(/ String  +program\.rb:#{line_of("leak")}$/, result.err)
    markdown = pitwall("report", file("x.pit"), "--view", "growth", "--format", "markdown").out
    markdown = markdown.force_encoding(Encoding::UTF_8)
    assert_match(/^\| \+[\d,]+ \| [\d,]+ … [\d,]+ \|.*`String` `program\.rb:#{line_of("leak")}` \|$/, markdown)
    audit = pitwall("report", file("x.pit"), "--audit").out
    refute_match(/leak \d/, audit)
  end

  def test_what_can_not_be_asked
    File.write(file("program.rb"), "1\n")
    calm = { "PITWALL_DEBUG" => nil }
    {
      %w[--growth --by class] => /--by: is of the table/, %w[--warmup 3s] => /--warmup: is of --growth/,
      %w[--growth --warmup 3] => /--warmup 3: not a time/
    }.each do |options, message|
      assert_one_line(2, message, pitwall("allocations", *options, "--", RUBY, "program.rb", env: calm))
    end
    pitwall("allocations", "--record", file("plain.pit"), "--", RUBY, "program.rb")
    {
      %w[--view growth] => /does not hold what lived over time/,
      %w[--warmup 1s] => /--warmup is for the view of growth/,
      %w[--view growth --thread x] => /--thread: the view of growth/
    }.each do |options, message|
      assert_one_line(2, message, pitwall("report", file("plain.pit"), *options, env: calm))
    end
  end
end
