# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/cli"
require "pitwall/history"
require "sequel"
require "stringio"
require_relative "../support/history_files"
require_relative "../support/postgres"

# The history in a real PostgreSQL, which the tests start.
class HistoryPostgresTest < Minitest::Test
  include HistoryFiles

  SERVER = []
  Minitest.after_run { SERVER.each(&:remove) }

  def setup
    super
    skip Postgres.missing if Postgres.missing
    $LOAD_PATH.unshift(*Postgres.paths) unless $LOAD_PATH.include?(Postgres.paths.first)
    SERVER << Postgres.new if SERVER.empty?
    @url = SERVER.first.url(name)
  end

  def env = { "PITWALL_STORE" => @url }

  def database(&block) = Sequel.connect(@url, &block)

  def count(table) = database { |db| db[table].count }

  # Everything that the command does, and the password is nowhere.
  def test_the_command
    bench_file("a.jsonl", 1000.0)
    compare_file("b.jsonl", 2000.0, 1900.0)
    results = [history("add", "a.jsonl", "b.jsonl", "--at", "2026-11-24T20:05:00+01:00", env: env),
               history("add", "a.jsonl", env: env)]
    values = Array.new(60) { |number| (number < 40 ? 1000 : 1100) + (number % 7) }
    store(@url) { |open| open.add("shop", runs(values, benchmark: "step")) }
    results += [%w[show --metric all], %w[show --plot], %w[show --format json], %w[changes], %w[export], %w[send],
                %w[show --mix-hosts], %w[show nothing]].map { |words| history(*words, env: env) }
    assert_equal [0, 0, 0, 0, 0, 0, 0, 0, 0, 2], results.map(&:status), results.map(&:err).join
    text = results.map { |result| result.out + result.err }.join
    refute_match(/secret/, text)
    assert_includes text, "0 runs, 2 results in project shop, postgres://#{Postgres::USER}@/#{name}?host="
    assert_match(/2026-02-10 00:00 .*step, wall time\n  commit 0{10}$/, results[5].out)
    assert_includes results[6].out, "2026-11-24T19:05:00Z,,checkout,,wall,ns,lower,"
    same = history("add", "a.jsonl", "b.jsonl", "--at", "2026-11-24T19:05:00Z", "--store", "h.sqlite3")
    assert_equal 0, same.status
    store { |open| open.add("shop", runs(values, benchmark: "step")) }
    assert_equal history("export", "--store", "h.sqlite3").out, results[6].out, "both databases say the same"
  end

  def test_keys_begin_with_the_project
    store(@url) do |open|
      open.add("shop", runs([1.0]))
      shown = %w[lock_timeout statement_timeout TimeZone].map do |name|
        open.instance_variable_get(:@database).get(Sequel.function(:current_setting, name))
      end
      assert_equal %w[30s 10min UTC], shown
    end
    database do |db|
      tables = db.tables - [:pitwall_schema]
      assert_equal %i[analyses change_points hosts projects results runs series], tables.sort
      tables.each { |table| assert_equal "project_id", db.schema(table).select { |_, info| info[:primary_key] }.first.first.to_s }
      tables.each { |table| db.indexes(table).each_value { |index| assert_equal :project_id, index[:columns].first } }
      assert_equal 1, db[:pitwall_points].where(project: "shop").count
      assert_equal 0, db[:pitwall_changes].count
    end
  end

  # Every query of examples/history/grafana.json and of the document, with Grafana's variables filled in.
  def test_the_dashboard
    all = runs(Array.new(40) { |number| (number < 20 ? 1000 : 1100) + (number % 3) })
    store(@url) do |open|
      open.add("shop", all)
      Pitwall::History::Analysis.update(open, "shop")
    end
    board = JSON.parse(File.read(File.join(Checkout::ROOT, "examples/history/grafana.json")))
    queries = board["panels"].map { |panel| panel["targets"][0]["rawSql"] } +
              board["annotations"]["list"].map { |one| one["target"]["rawSql"] } +
              board["templating"]["list"].map { |one| one["query"] } +
              [File.read(File.join(Checkout::ROOT, "doc/history.md"))[/```sql\n(.*?)```/m, 1]]
    filled = { "$__timeFilter(measured_at)" => "measured_at > '2020-01-01'", "$project" => "shop", "$metric" => "wall",
               "$host" => all[0].host_id, "$benchmark" => "'checkout'" }
    counts = database { |db| queries.map { |sql| db.fetch(filled.inject(sql) { |text, pair| text.gsub(*pair) }).count } }
    assert_equal [40, 1, 1, 1, 1, 1, 1, 0], counts
  end

  # Twenty writers begin with an empty database. Each adds its own runs and some that all have. One is killed.
  def test_twenty_writers
    pids = 20.times.map { |number| writer(number, @url) }
    eventually { saved(19).positive? }
    Process.kill("KILL", pids.last)
    statuses = pids.map { |pid| Process.wait2(pid).last }
    assert_equal [true] * 19, statuses.first(19).map(&:success?), 20.times.map { |number| File.read(file("err#{number}")) }.join
    assert_equal [ROUNDS] * 19, 19.times.map { |number| saved(number) }
    assert_equal 2 * ROUNDS, count_of("shared"), "what all have is there once"
    19.times { |number| assert_equal 4 * ROUNDS, count_of("own #{number}") }
    assert_operator count_of("own 19"), :>=, 4 * saved(19), "what was reported as saved is there"
    assert_equal 0, count_of("own 19") % 4, "all of a transaction, or nothing"
    assert_equal count(:runs), count(:results)
  end

  def count_of(source) = database { |db| db[:runs].where(run_id: run_ids(source)).count }

  # The server crashes: results wait in the spool, and are sent once when it is back.
  def test_a_database_that_goes_away
    bench_file("a.jsonl", 1.0)
    bench_file("b.jsonl", 2.0)
    assert_equal 0, history("add", "a.jsonl", env: env).status
    SERVER.first.stop
    begin
      assert_refused(4, %r{\Apitwall: not saved: postgres://\w+@/#{name}\?host=.*; kept in \.pitwall/spool/\h+\.spooled\.json, }, "add", "b.jsonl", env: env)
      assert_refused(4, %r{\Apitwall: postgres://}, "send", env: env)
      refute_match(/secret/, File.read(Dir[file(".pitwall/spool/*")].first))
    ensure
      SERVER.first.start
    end
    kept = Dir[file(".pitwall/spool/*")].first
    FileUtils.cp(kept, file("copy"))
    # Another database does not get it.
    assert_match(/\Anothing waits for h\.sqlite3/, history("send", "--store", "h.sqlite3").out)
    assert_match(/\A1 run sent to postgres:/, history("send", env: env).out)
    assert_empty Dir[file(".pitwall/spool/*")]
    # Killed between saving and deleting the file: the file is sent again.
    FileUtils.cp(file("copy"), kept)
    assert_match(/\A0 runs,.*1 run there already/, history("add", "b.jsonl", env: env).out)
    assert_empty Dir[file(".pitwall/spool/*")]
    assert_equal [2, 4], [count(:runs), count(:results)]
  end
end
