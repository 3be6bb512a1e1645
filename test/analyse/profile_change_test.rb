# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require_relative "../test_helper"
require_relative "../oracle/samples"
require_relative "../support/random_recording"
require_relative "../support/simulated_profile"
require "pitwall/analyse"
require "pitwall/analyse/compare/profile_change"

class ProfileChangeTest < Minitest::Test
  ProfileChange = Pitwall::Analyse::ProfileChange
  WEIGHTS = Array.new(40) { |leaf| (leaf + 1)**-1.2 }.freeze

  def setup = @dir = Dir.mktmpdir

  def teardown = FileUtils.rm_rf(@dir)

  # --- invariants ---

  def test_nothing_changed_against_its_own_copy
    [1, 3].each do |runs|
      %i[wall cpu].each do |weight|
        recordings = Array.new(runs) { |seed| read(RandomRecording.new(seed)) }
        result = compare(recordings, recordings, weight: weight)
        assert_nil result.reason
        assert_operator result.tests, :>, 10
        assert_empty result.rows.select(&:changed?)
        assert(result.rows.all? { |row| row.presence == :both })
        assert(result.rows.flat_map { |row| [row.own, row.total] }.all? { |delta| delta.difference.point.zero? })
      end
    end
  end

  def test_swapped_sides_give_the_same_with_other_signs
    [1, 4].each do |runs|
      sides = Array.new(2) { |side| Array.new(runs) { |run| read(RandomRecording.new(10 * side + run)) } }
      forth = by_name(compare(*sides))
      back = by_name(compare(*sides.reverse))
      assert_equal forth.keys.sort, back.keys.sort
      forth.each do |name, row|
        other = back.fetch(name)
        %i[own total].each do |kind|
          assert_in_delta row[kind].difference.point, -other[kind].difference.point, 1e-12
          assert_in_delta row[kind].difference.low, -other[kind].difference.high, 1e-9 if row[kind].p
          assert_equal row[kind].changed, other[kind].changed
          assert_equal row[kind].p.nil?, other[kind].p.nil?
        end
      end
    end
  end

  def test_a_change_is_claimed_exactly_where_its_interval_excludes_nothing_changed
    random = Random.new(5)
    changed = WEIGHTS.each_with_index.map { |weight, leaf| leaf < 4 ? weight * [1.3, 1, 2, 0.3][leaf] : weight }
    result = compare(runs(random, 6), runs(random, 6, changed))
    assert(result.rows.any?(&:changed?))
    result.rows.flat_map { |row| [row.own, row.total] }.select(&:p).each do |delta|
      assert_equal delta.changed, delta.difference.low.positive? || delta.difference.high.negative?
      assert_operator delta.difference.level, :>=, 0.95
    end
  end

  def test_shares_are_those_of_slow_and_obvious_sums
    recording = RandomRecording.new(3, segments: 3)
    segments = read(recording)
    samples = recording.weighed(:wall)
    whole = Oracle.total(samples).to_f
    assert_empty Pitwall::Analyse::IdleThreads.find(segments)
    own = Oracle.self_by_method(samples)
    total = Oracle.total_by_method(samples)
    result = compare([segments], [segments])
    rows = result.rows.reject { |row| row.name == "(no stack)" }
    assert_operator rows.size, :>, 8
    rows.each do |row|
      method = own.keys.find { |name, path,| name == row.name && path == row.path } || total.keys.find do |name, path,|
        name == row.name && path == row.path
      end
      assert_in_delta own[method] / whole, row.own.a_share, 1e-9, row.name
      assert_in_delta total[method] / whole, row.total.b_share, 1e-9, row.name
      assert_in_delta row.own.a_share, row.own.a, 1e-9, "the slices of time add up to the whole"
      assert_in_delta row.total.a_share, row.total.a, 1e-9
    end
  end

  # --- false alarms ---

  def test_equals_give_no_more_false_alarms_than_stated
    random = Random.new(1)
    false_alarms = { 3 => 20, 6 => 20, 12 => 5 }.sum do |count, times|
      Array.new(times) { compare(runs(random, count), runs(random, count), iterations: 1000) }.count do |result|
        result.rows.any?(&:changed?)
      end
    end
    assert_operator false_alarms, :<=, 2 # 5% of 45
  end

  def test_equals_give_no_more_false_alarms_in_one_recording_each
    random = Random.new(2)
    false_alarms = [0.0, 0.6, 0.9].sum do |stay|
      side = -> { [[SimulatedProfile.program(random, WEIGHTS, samples: 1000, stay: stay)]] }
      15.times.count { compare(side.(), side.()).rows.any?(&:changed?) }
    end
    assert_operator false_alarms, :<=, 2 # 5% of 45
  end

  def test_a_planted_change_is_found
    random = Random.new(3)
    slower = WEIGHTS.dup.tap { |weights| weights[2] *= 2 }
    found = Array.new(5) { compare(runs(random, 8), runs(random, 8, slower), iterations: 1000) }.count do |result|
      result.changed.first&.name == "Leaf#l2"
    end
    assert_operator found, :>=, 5
    found = Array.new(5) do
      compare([[SimulatedProfile.program(random, WEIGHTS, samples: 4000)]],
              [[SimulatedProfile.program(random, slower, samples: 4000)]])
    end
                 .count { |result| result.changed.any? { |row| row.name == "Leaf#l2" } }
    assert_operator found, :>=, 5
  end

  def test_one_methods_growth_does_not_shrink_the_others_where_iterations_are_known
    a = Array.new(6) { |run| [visits("Foo#bar" => 100 + run, "Foo#baz" => 500 - run)] }
    b = Array.new(6) { |run| [visits("Foo#bar" => 400 + run, "Foo#baz" => 500 - run)] }
    shares = by_name(compare(a, b))
    assert shares.fetch("Foo#baz").own.changed
    per_iteration = compare(a, b, iterations: 10)
    assert_equal :iteration, per_iteration.unit
    assert_equal ["Foo#bar"], per_iteration.changed.map(&:name)
    assert_in_delta 30e6, per_iteration.changed.first.own.difference.point, 1
    assert_equal [60e6, 90e6], per_iteration.means
    assert_in_delta 100.0 / 600, by_name(per_iteration).fetch("Foo#bar").own.a_share, 0.01
  end

  # Values of R's t.test (Welch, conf.level 0.99).
  def test_the_noise_between_runs_is_welchs
    sides = [[120, 131, 118, 125, 122], [140, 152, 139, 149, 160, 141]].map do |values|
      values.map { |value| Struct.new(:own, :whole, :captures).new([0, value], 1000, 10**9) }
    end
    noise = ProfileChange::BetweenRuns.new(sides, sides.map { |runs| runs.map { 1 } })
    difference = noise.difference(:own, 1)
    assert_in_delta 0.000349255743748, difference.p, 1e-12
    assert_in_delta 8.36695374335, difference.degrees, 1e-9
    estimate = difference.estimate(0.01, 11)
    assert_in_delta 10.0938385336, estimate.low, 1e-8
    assert_in_delta 37.1728281330, estimate.high, 1e-8
  end

  def test_runs_that_agree_by_luck_are_no_proof
    a = Array.new(3) { [visits("Foo#bar" => 4, "Foo#baz" => 400)] }
    b = Array.new(3) { [visits("Foo#bar" => 5, "Foo#baz" => 399)] }
    assert_empty compare(a, b).changed
  end

  def test_a_hundred_samples_of_one_call_are_one_event
    rest = [["main", "Foo#baz"], 1]
    long = [rest] * 300 + [[["main", "Foo#bar"], 100]]
    short = (([rest] * 3 + [[["main", "Foo#bar"], 1]]) * 100)
    a = [[SimulatedProfile.segment([rest] * 400)]]
    assert_empty compare(a, [[SimulatedProfile.segment(long)]]).changed
    assert_equal ["Foo#bar", "Foo#baz"], compare(a, [[SimulatedProfile.segment(short)]]).changed.map(&:name).sort
  end

  def test_what_would_have_been_seen_shrinks_with_more_of_it
    random = Random.new(4)
    few, many = [4, 12].map { |count| compare(runs(random, count), runs(random, count)).detectable }
    assert_operator many, :<, few
    assert_operator few, :<, 1
  end

  # --- matching methods ---

  def test_moved_lines_other_folders_gems_and_rubies_are_the_same_methods
    pairs = {
      %w[/a/lib/x.rb /tmp/clone/b/lib/x.rb] => "lib/x.rb",
      %w[/usr/lib/ruby/gems/3.3.0/gems/rack-3.0.1/lib/rack.rb
         /b/vendor/gems/rack-3.1.8/lib/rack.rb] => "gems/rack/lib/rack.rb",
      %w[/x/gems/nokogiri-1.16.0-x86_64-linux-gnu/lib/n.rb
         /x/gems/nokogiri-1.17.0/lib/n.rb] => "gems/nokogiri/lib/n.rb",
      %w[/x/bundler/gems/rails-html-0123456789ab/a.rb
         /y/bundler/gems/rails-html-ba9876543210/a.rb] => "gems/rails-html/a.rb",
      %w[/usr/lib/ruby/3.1.0/set.rb /opt/ruby/lib/ruby/3.4.0/set.rb] => "ruby/set.rb",
      %w[/usr/lib/ruby/vendor_ruby/rubygems/version.rb
         /opt/lib/ruby/site_ruby/3.4.0/rubygems/version.rb] => "ruby/rubygems/version.rb",
      ["(eval at /a/lib/x.rb:12)", "(eval at /tmp/clone/b/lib/x.rb:99)"] => "(eval at lib/x.rb)",
      ["", "<internal:array>"] => ""
    }
    pairs.each do |(a, b), expected|
      names = ProfileChange::Names.new(["/a", "/tmp/clone/b/"])
      numbers = [a, b].each_with_index.map do |path, side|
        names.number(Pitwall::Analyse::MethodInfo.new("Foo#bar", path, 10 + side, 0), side)
      end
      assert_equal 1, numbers.uniq.size, a
      assert_equal expected, names[numbers.first].path
      assert_equal [10, 11], names[numbers.first].lines
    end
    names = ProfileChange::Names.new(["/a", "/b"])
    number = ->(name, path, side) { names.number(Pitwall::Analyse::MethodInfo.new(name, path, 0, 0), side) }
    assert_equal number.("#<Class:/a/lib/x.rb:3>#m", "", 0), number.("#<Class:/b/lib/x.rb:7>#m", "", 1)
    assert_equal number.("block in <main> (bench.rb:5)", "", 0), number.("block in <main> (bench.rb:6)", "", 1)
    refute_equal number.("Foo#bar", "/a/x.rb", 0), number.("Foo#bar", "/a/y.rb", 0)
  end

  def test_blocks_count_for_their_methods_where_one_side_cannot_tell_them_apart
    a = [SimulatedProfile.segment([[["main", "Foo#bar", "block (2 levels) in Foo#bar"], 50], [["main"], 50]])]
    b = [SimulatedProfile.segment([[["main", "Foo#bar"], 50], [["main"], 50]], walk: "rb_profile_frames")]
    result = compare([a] * 3, [b] * 3)
    assert_equal %w[Foo#bar main], result.rows.map(&:name).sort
    assert_empty result.changed
    assert_match(/blocks count for their methods/, result.notes.join)
  end

  def test_methods_of_one_side_are_new_or_gone
    a = Array.new(4) { |run| [visits("Foo#old" => 100 + run, "Foo#both" => 100)] }
    b = Array.new(4) { |run| [visits("Foo#new" => 100 + run, "Foo#both" => 100)] }
    assert_equal({ "Foo#new" => :new, "Foo#old" => :gone },
                 compare(a, b).changed.to_h { |row| [row.name, row.presence] })
  end

  # --- `within` and callers ---

  def test_only_what_runs_inside_counts
    start_up = [%w[main Kernel#require Foo#load], 300]
    a = Array.new(4) do |run|
      [SimulatedProfile.segment([start_up, [%w[main loop Foo#bar], 100 + run], [%w[main loop Foo#baz], 100]])]
    end
    b = Array.new(4) do |run|
      [SimulatedProfile.segment([[start_up[0], 900], [%w[main loop Foo#bar], 200 + run], [%w[main loop Foo#baz], 100]])]
    end
    result = compare(a, b, within: ["loop"], iterations: 100)
    assert_equal ["Foo#bar"], result.changed.map(&:name)
    assert_equal %w[Foo#bar Foo#baz], result.rows.map(&:name).sort
    assert_equal [200_000_000] + [201_000_000, 202_000_000, 203_000_000], result.wholes[0]
    assert_in_delta 0.5, result.changed.first.own.a_share, 0.01
    assert_empty result.changed.first.callers
    assert_empty result.changed_below
  end

  def test_only_what_runs_inside_counts_in_one_recording_each_as_well
    a, b = [300, 900].map do |start_up|
      [[SimulatedProfile.segment([[%w[main Foo#load], start_up],
                                  *[[%w[main loop], 1], [%w[main loop Foo#bar], 1], [%w[main loop Foo#baz], 2]] * 50])]]
    end
    result = compare(a, b, within: ["loop"])
    assert_empty result.changed
    assert_equal [[200_000_000], [200_000_000]], result.wholes
    assert_equal({ "Foo#bar" => 0.25, "Foo#baz" => 0.5 }, result.rows.to_h { |row| [row.name, row.own.a] })
    assert(result.rows.all? { |row| row.own.a == row.own.a_share })
  end

  def test_the_way_up_follows_most_of_the_change
    profile = lambda do |by_cart, by_order|
      Array.new(4) do |run|
        [SimulatedProfile.segment([[%w[main Web#call Cart#sum Money#add], by_cart + run],
                                   [%w[main Web#call Order#total Money#add Money#add], by_order],
                                   [%w[main Web#call], 500]])]
      end
    end
    row = compare(profile.call(100, 100), profile.call(120, 400), iterations: 1000).changed.first
    assert_equal "Money#add", row.name
    assert_equal %w[Order#total Web#call main], row.callers.map(&:name)
    assert_in_delta 300_000, row.callers.first.change, 1
    assert_in_delta 300_000, row.callers.last.change, 1
    assert_equal "/app/lib/app.rb", row.callers.first.path
  end

  def test_what_only_calls_more_is_told_apart
    profile = lambda do |each|
      leaves = Array.new(400) { |leaf| [["main", "Foo#fan", "Leaf#l#{leaf}"], each] }
      Array.new(6) { |run| [SimulatedProfile.segment(leaves + [[%w[main Foo#other], 1000 + run]])] }
    end
    result = compare(profile.call(2), profile.call(3), iterations: 1)
    assert_empty result.changed
    assert_equal ["Foo#fan"], result.changed_below.map(&:name)
    assert_equal ["main"], result.changed_below.first.callers.map(&:name)
  end

  # --- sides that cannot be compared ---

  def test_a_recording_without_samples_is_a_reason
    full = [visits("Foo#bar" => 10)]
    assert_match(/\Aside B has a recording without any sample/,
                 compare([full], [[SimulatedProfile.segment([])]]).reason)
    assert_match(/\Aside A/, compare([], [full]).reason)
    result = compare([full], [full], within: ["nowhere"])
    assert_match(/\Aside A/, result.reason)
    assert_empty result.rows
  end

  def test_a_handful_of_samples_gives_no_verdict_and_no_crash
    result = compare([[visits("Foo#bar" => 1)]], [[visits("Foo#baz" => 1)]])
    assert_nil result.reason
    assert_empty result.changed
  end

  def test_sides_sampled_in_different_modes_are_noted
    sides = %w[signal safepoint].map { |mode| [[SimulatedProfile.segment([[["main"], 50]], mode: mode)]] }
    assert_match(/different modes \(signal, safepoint\)/, compare(*sides).notes.join)
  end

  def test_two_runs_a_side_count_as_their_samples
    random = Random.new(6)
    result = compare(runs(random, 2), runs(random, 2), iterations: 10)
    assert_equal %i[within_run share], [result.noise, result.unit]
    assert_equal [2, 2], result.runs
  end

  private

  # Rows are read from the file again.
  def read(recording)
    path = File.join(@dir, "#{recording.object_id}.pit")
    File.binwrite(path, recording.bytes)
    Pitwall::Record.read(path).segments
  end

  def compare(a, b, iterations: nil, **options)
    ProfileChange.compare(a: side(a, iterations), b: side(b, iterations), **options)
  end

  def side(recordings, iterations) = ProfileChange::Side.new(recordings: recordings, iterations: iterations)

  def by_name(result) = result.rows.to_h { |row| [row.name, row] }

  # Processes that differ by more than their sampling noise.
  def runs(random, count, weights = WEIGHTS)
    Array.new(count) do
      [SimulatedProfile.program(random, weights.map { |weight| weight * Math.exp(0.1 * (random.rand - 0.5)) },
                                samples: 600, stay: 0.2)]
    end
  end

  # Visits of one sample, evenly mixed.
  def visits(counts)
    list = counts.flat_map { |name, count| Array.new(count) { |at| [(at + 0.5) / count, ["main", name]] } }
    SimulatedProfile.segment(list.sort.map { |_, stack| [stack, 1] })
  end
end
