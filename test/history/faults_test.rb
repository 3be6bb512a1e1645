# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/cli"
require "pitwall/history"
require "sequel"
require "stringio"
require_relative "../support/history_files"

# What was reported as saved is there, once, whatever happens.
class HistoryFaultsTest < Minitest::Test
  include HistoryFiles

  STORE = { "PITWALL_STORE" => "h.sqlite3" }.freeze

  def count(table) = Sequel.sqlite(file("h.sqlite3")) { |database| database[table].count }

  def ids = Sequel.sqlite(file("h.sqlite3")) { |database| database[:runs].select_map(:run_id) }

  # Three writers begin without a file. One is killed, whenever that comes.
  def test_writers_at_once
    pids = 3.times.map { |number| writer(number, file("h.sqlite3")) }
    eventually { saved(2).positive? }
    Process.kill("KILL", pids.last)
    statuses = pids.map { |pid| Process.wait2(pid).last }
    assert_equal [true, true], statuses.first(2).map(&:success?), 3.times.map { |number| File.read(file("err#{number}")) }.join
    2.times { |number| assert_empty run_ids("own #{number}") - ids }
    assert_empty run_ids("shared") - ids
    assert_operator (run_ids("own 2") & ids).size, :>=, 4 * saved(2)
    assert_equal 0, (run_ids("own 2") & ids).size % 4, "all of a transaction, or nothing"
    assert_equal [ids.uniq.size, ids.size], [ids.size, count(:results)]
  end

  # Files can't grow beyond a limit, as on a full disk. Nothing is reported as saved, and the history is as before.
  def test_a_full_disk
    store { |open| open.add("shop", runs([1.0] * 10)) }
    before = [count(:runs), count(:results)]
    Dir.mkdir(file("many"))
    names = 60.times.map { |number| bench_file("many/#{number}.jsonl", number.to_f, benchmark: "case #{number} #{"x" * 900}") }
    size = File.size(file("h.sqlite3"))
    script = "trap('XFSZ', 'IGNORE'); Process.setrlimit(:FSIZE, #{size + 8192}); load ARGV.shift"
    command = ["-r#{Checkout::ROOT}/script/checkout", "-e",
               "Checkout.use_vendored_gems; $LOAD_PATH.unshift('#{Checkout::ROOT}/lib'); #{script}", "#{Checkout::ROOT}/exe/pitwall"]
    result = capture(ALONE.merge(STORE).merge("PITWALL_DEBUG" => nil), RUBY, *command, "history", "add", *names)
    assert_one_line(4, /\Apitwall: not saved: h\.sqlite3: .*; nor kept: \.pitwall\/spool: File too large$/, result)
    assert_equal before, [count(:runs), count(:results)]
    assert_empty Dir[file(".pitwall/spool/*")]
    assert_equal 0, history("add", *names, env: STORE).status
    assert_equal before[0] + 60, count(:runs)
  end

  # The database can't be written, the spool can.
  def test_what_was_not_saved_is_sent_later
    Dir.mkdir(file("folder"))
    File.write(file("folder/x"), "")
    bench_file("a.jsonl", 1.0)
    full = { "PITWALL_STORE" => "folder/x/h.sqlite3" }
    assert_refused(4, %r{not saved: folder/x/h.sqlite3: .*; kept in \.pitwall/spool/\h+\.spooled\.json, pitwall history send sends it$}, "add", "a.jsonl", env: full)
    FileUtils.rm(file("folder/x"))
    assert_equal "1 run sent to folder/x/h.sqlite3\n", history("send", env: full).out
    assert_equal "nothing waits for folder/x/h.sqlite3\n", history("send", env: full).out
    assert_match(/1 run there already/, history("add", "a.jsonl", env: full).out)
  end

  # A damaged parcel is named, and keeps nothing else back.
  def test_a_damaged_parcel
    bench_file("a.jsonl", 1.0)
    FileUtils.mkdir_p(file(".pitwall/spool"))
    ["{}", "{\"schema\":\"pitwall/history-spool-1\"}", "", "[]",
     "{\"schema\":\"pitwall/history-spool-1\",\"to\":\"h.sqlite3\",\"project\":\"a\",\"runs\":[{}]}"].each do |text|
      File.write(file(".pitwall/spool/a.spooled.json"), text)
      assert_refused(5, %r{\.pitwall/spool/a\.spooled\.json: }, "send", env: STORE)
    end
    result = history("add", "a.jsonl", env: STORE)
    assert_equal [0, 1], [result.status, result.err.lines.size]
    assert_path_exists file(".pitwall/spool/a.spooled.json")
    # Beside it one that can't be read, and a good one of the same file by another path: that one arrives.
    Dir.mkdir(file(".pitwall/spool/b.spooled.json"))
    spool = Pitwall::History::Spool.new(file(".pitwall/spool"))
    place = Pitwall::History::Address.parse(File.join(@dir, "h.sqlite3"))
    kept = spool.keep(place, "shop", runs([3.0]))
    assert_refused(5, /a\.spooled\.json: damaged/, "send", env: STORE)
    refute_path_exists kept
    assert_equal 2, count(:runs)
    # Another sender has sent it meanwhile.
    assert_nil spool.send(:read, kept, place)
  end

  # What the database refuses keeps no new results back, and nothing that waits behind it.
  def test_a_refused_parcel
    bench_file("a.jsonl", 1.0)
    spool = Pitwall::History::Spool.new(file(".pitwall/spool"))
    place = Pitwall::History::Address.parse(file("h.sqlite3"))
    paths = 2.times.map { |number| spool.keep(place, number.zero? ? "refused" : "fine", runs([number.to_f])) }
    store { nil }
    Sequel.sqlite(file("h.sqlite3")) do |database|
      database.run("CREATE TRIGGER no BEFORE INSERT ON projects WHEN new.project_id = 'refused' " \
                   "BEGIN SELECT RAISE(ABORT, 'no'); END")
    end
    result = history("add", "a.jsonl", env: STORE)
    assert_equal [0, "1 run, 2 results in project shop, h.sqlite3\n"], [result.status, result.out], result.err
    assert_match(%r{\Apitwall: older results in \.pitwall/spool wait: h\.sqlite3: no$}, result.err)
    assert_equal [true, false], paths.map { |path| File.exist?(path) }
  end

  # Only a database needs the gems.
  def test_missing_gems
    bench_file("a.jsonl", 1.0)
    hide = ->(name) { "module Kernel; alias was require; def require(path) = path == '#{name}' ? raise(LoadError, 'cannot load such file -- #{name}') : was(path); end;" }
    { "sequel" => "h.sqlite3", "sqlite3" => "h.sqlite3", "pg" => "postgres://u:secret@localhost/d" }.each do |name, place|
      start = START.map { |word| word.sub("load '", "#{hide.call(name)} load '") }
      result = capture(ALONE.merge("PITWALL_DEBUG" => nil), RUBY, *start, "history", "add", "a.jsonl", "--store", place)
      assert_one_line(4, /\Apitwall: the gem #{name} is missing: gem install #{name}$/, result)
    end
  end
end
