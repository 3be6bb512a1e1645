# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/command_line"

# The collector's cost from end to end: recorded by the command, told by the report.
class GCCostCommandTest < Minitest::Test
  include CommandLine

  PROGRAM = <<~'RUBY'
    SPARING = ENV["FRUGAL"]; KEPT = Array.new(10_000) { |n| n.to_s }
    def wasteful(n)
      [n, n + 1].map { |m| "item #{m}" } # 2 arrays, 2 strings, 2 numbers as strings
    end
    def frugal(n) = n * 3 % 7
    150_000.times { |n| wasteful(n) unless SPARING; frugal(n) }
    # Long enough for samples of both.
    limit = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.1
    frugal(1) while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < limit
  RUBY
  LINE = 3

  def setup
    super
    File.write(file("a.rb"), PROGRAM)
  end

  def recorded(verb, out, *options, env: {})
    result = pitwall(verb, "--quiet", "--record", out, *options, "--", RUBY, "--disable-gems", "a.rb", env: env)
    assert_predicate result.status, :success?, result.err
  end

  def report(*arguments) = JSON.parse(pitwall("report", *arguments, "--format", "json").out)

  def test_a_prediction_from_a_profile_and_a_recording_of_allocations
    recorded("profile", "time.pit")
    recorded("allocations", "sites.pit", "--stacks")
    said = report("time.pit", "sites.pit", "--predict", "a.rb:#{LINE}")["gc_cost"]
    refute said["disturbed"]
    assert said["stacks"]
    prediction = said["prediction"]
    # Exact, but for what the VM makes once; on some Rubies numbers become strings without an object.
    assert_includes [4, 5, 6].map { |each| each * 150_000 }, prediction["objects"].round(-4)
    %w[saving_ns own_ns gc_ns].each { |part| assert_operator prediction[part]["low"], :<=, prediction[part]["point"] }
    assert_in_delta prediction["saving_ns"]["point"], prediction["own_ns"]["point"] + prediction["gc_ns"]["point"], 2
    assert_operator prediction["gc_ns"]["point"], :<=, said["gc_ns"] + 1
    assert_operator prediction["gc_ns"]["point"], :>, said["gc_ns"] * 0.4
    top = said["lines"].first
    assert_equal ["wasteful", LINE], [top["method"][/\w+\z/], top["line"]]
    assert_equal said["lines"].sum { |row| row["gc_ns"] }.fdiv(said["charged_ns"]).round(3), 1.0
    text = pitwall("report", "time.pit", "sites.pit", "--predict", "wasteful").out
    assert_match(/^Removing wasteful would save .* A model, not\s+a\s+measurement\.$/m, text)
    assert_match(/a\.rb:3$/, text)
  end

  def test_a_prediction_from_one_recording_of_both
    recorded("profile", "both.pit", "--allocations", "1/20")
    said = report("both.pit", "--predict", "a.rb:#{LINE}")["gc_cost"]
    assert said["sampled"]
    assert said["stacks"]
    refute said["disturbed"]
    prediction = said["prediction"]
    # Few bursts in so short a program, fewer on a busy machine: it has some part, and what it is said to be.
    assert_operator prediction["objects"], :>, 0
    assert_includes 1..said["gc_ns"] + 1, prediction["gc_ns"]["point"].round
  end

  def test_all_collection_is_charged_to_somebody
    recorded("allocations", "sites.pit")
    said = report("sites.pit", "--view", "gc-cost")["gc_cost"]
    assert_operator said["charged_ns"], :<=, said["gc_ns"]
    assert_operator said["charged_ns"], :>, 0
    runs = report("sites.pit", "--view", "gc")["gc"]
    assert_equal said["gc_ns"], runs["total_ns"]
    assert_equal runs["total_ns"], runs["runs"].sum { |run| run["marking_ns"] + run["sweeping_ns"] }
  end

  def test_a_prediction_against_what_happened
    recorded("profile", "before.pit")
    recorded("profile", "after.pit", env: { "FRUGAL" => "1" })
    recorded("allocations", "sites.pit", "--stacks")
    arguments = %w[compare before.pit after.pit --predicted wasteful --recording sites.pit --weight cpu]
    result = pitwall(*arguments, "--format", "json")
    object = JSON.parse(result.out)
    check = object["predictions"].first
    assert_equal ["wasteful", "before.pit", "after.pit", "cpu", "one_run", [1, 1]],
                 check.values_at("place", "base", "side", "weight", "noise", "runs")
    assert_equal check["verdict"] == "undecided" ? 3 : 0, result.status.exitstatus
    saving = check["actual"]["saving_ns"]
    assert_operator saving["point"], :>, 0
    assert_in_delta check["a_ns"] - check["b_ns"], saving["point"], 1
    assert_in_delta saving["point"], check["actual"]["own_ns"]["point"] + check["actual"]["gc_ns"]["point"], 2
    assert_operator check["actual"]["runs_avoided"]["point"], :>, 0
    assert_operator check["predicted"]["saving_ns"]["point"], :>, 0
    assert_equal 1, object["why"].size
    text = pitwall(*arguments).out
    assert_match(/removing wasteful was to save .* and saved/m, text)
    assert_match(/^  GC runs avoided +\S/, text)
    assert_match(/\A```\n.*removing wasteful/m, pitwall(*arguments, "--format", "markdown").out)
    repeated = [*arguments, "--before", "before.pit", "--after", "after.pit", "--format", "json"]
    several = JSON.parse(pitwall(*repeated).out)["predictions"].first
    assert_equal ["between_runs", [2, 2]], several.values_at("noise", "runs")
    assert_in_delta saving["point"], several["actual"]["saving_ns"]["point"], 2

    command = %w[compare --env FRUGAL=1 --predicted wasteful --recording before.pit --recording sites.pit
                 --pairs 2 --quiet --format json --out -]
    measured = JSON.parse(pitwall(*command, "--", RUBY, "--disable-gems", "a.rb").out)["predictions"].first
    assert_equal %w[measured wasteful wall], measured.values_at("noise", "place", "weight")
    assert_predictions_refuse
  end

  def assert_predictions_refuse
    { %w[before.pit after.pit --recording sites.pit] => /--recording: is for --predicted, which predicts from it/,
      %w[before.pit after.pit --predicted wasteful] => /no places of allocation/,
      %w[before.pit after.pit --predicted nothing --recording sites.pit] => /no line \(PATH:LINE\) or method "nothing"/,
      %w[before.pit sites.pit --predicted wasteful] =>
        /--predicted: objects were followed otherwise in before\.pit than in sites\.pit/,
      %w[-e 1 -e 2 --before before.pit] => /--before: names another run beside two recordings/,
      %w[-e 1 -e 2 --predicted wasteful] => /--predicted: works with a whole command/,
      %w[--env A=1 --predicted wasteful -- ruby a.rb] => /--predicted: name recordings of the base's command/
    }.each do |arguments, expected|
      assert_one_line 2, expected, pitwall("compare", *arguments, env: { "PITWALL_DEBUG" => nil })
    end
  end

  def test_mistakes_are_one_line
    recorded("profile", "time.pit")
    result = pitwall("report", "time.pit", "--predict", "a.rb:3", env: { "PITWALL_DEBUG" => nil })
    refusal = "pitwall: the recording has no places of allocation: " \
              "record it with `pitwall profile --allocations -- CMD`, " \
              "or name one of `pitwall allocations --stacks -- CMD` beside it (compare: --recording FILE)\n"
    assert_equal [2, refusal], [result.status.exitstatus, result.err]
    result = pitwall("report", "time.pit", "--view", "gc-cost", env: { "PITWALL_DEBUG" => nil })
    refusal = /--view gc-cost: no objects were followed in this recording; pitwall profile --allocations -- CMD does/
    assert_one_line 2, /#{refusal} that/, result
    result = pitwall("report", "time.pit", "--view", "gc-cost", "--tree", env: { "PITWALL_DEBUG" => nil })
    assert_match(/\Apitwall: --format text shows one view: ask for one of --view gc-cost, --tree/, result.err)
  end
end
