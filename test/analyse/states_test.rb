# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/recording_builder"
require "json"
require "pitwall/analyse"
require "pitwall/cli"
require "pitwall/show"
require "stringio"
require "tmpdir"

# The list of states: the same numbers in recordings, documents and views.
class StatesTest < Minitest::Test
  States = Pitwall::Analyse::States

  def test_numbers_are_those_of_the_extension_and_of_the_format
    enum = File.read(File.join(Checkout::ROOT,
                               "ext/pitwall/session/threads.h"))[/^enum \{ (PW_RUNNING.*?) \};/, 1].split(", ")
    assert_equal States::ALL.size, enum.size, enum.inspect
    table = File.read(File.join(Checkout::ROOT, "doc/record-format.md"))[/^### Thread states$(.*?)^###/m, 1]
    assert_equal States::ALL.each_index.to_a, table.scan(/^\| (\d+) \|/).flatten.map(&:to_i)
  end

  def test_names_go_both_ways
    assert_equal States::ALL.each_index.to_a, States.names.map { |name| States.number(name) }
    assert_equal [nil, "state 9", "state 9", nil],
                 [States.number("state 9"), States.name(9), States[9].head, States[9].wait]
    States::ALL.each { |state| assert state.name && state.head && state.title, state.inspect }
  end

  # Every state, and an unknown one, in the table of threads, JSON, --state and the Firefox profiler's categories.
  def test_every_state_is_shown
    states = [*States::ALL.each_index, 9]
    Dir.mktmpdir do |dir|
      bytes = RecordingBuilder.build do |segment|
        states.each do |state|
          segment.row stack: [["Shop#s#{state}", "/app/shop.rb", 3, 4]], wall: 10_000, state: state
        end
      end
      File.binwrite(file = File.join(dir, "a.pit"), bytes)
      head = run_pitwall("report", file, "--view", "threads")
      states.each { |state| assert_includes head, States[state].head }
      assert_equal states.map { |state| States.name(state) }.sort,
                   JSON.parse(run_pitwall("report", file, "--view", "threads", "--format",
                                          "json"))["threads"].first["states"].keys.sort
      States.names.each_with_index do |name, state|
        assert_match(/\AShop#s#{state} 10000000\n\z/,
                     run_pitwall("export", file, "--to", "collapsed", "--out", "-", "--state", name))
      end
      markers = JSON.parse(run_pitwall("export", file, "--to", "firefox", "--out", "-")).then do |profile|
        markers(profile)
      end
      assert_equal [["blocked", "Idle"], ["gvl", "GVL wait"], ["off-cpu", "Idle"], ["running", "Other"],
                    ["state 9", "Other"]], markers.sort
    end
  end

  private

  def markers(profile)
    found = profile["threads"].first["markers"]
    found["name"].zip(found["category"], found["data"]).select { |_, _, data| data["type"] == "state" }
      .map do |name, category,|
        [profile["shared"]["stringArray"][name], profile["meta"]["categories"][category]["name"]]
      end
  end

  def run_pitwall(*words)
    out = StringIO.new
    err = StringIO.new
    assert_equal 0, Pitwall::CLI.run(words, out: out, err: err), err.string
    out.string
  end
end
