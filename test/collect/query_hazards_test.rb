# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/recorded_program"
require "pitwall/analyse"

# Queries in threads, fibers, forked children and at every other inconvenience: counted where they belong, and never made to fail. What
# notifies here is a stand-in for ActiveSupport; the real one is in queries_test.
class QueryHazardsTest < Minitest::Test
  include RecordedProgram

  def settings = { mode: "signal" }

  NOTIFICATIONS = <<~'RUBY'
    module ActiveSupport
      module Notifications
        class << self
          attr_accessor :notifier
          def subscribers = @subscribers ||= []
          def monotonic_subscribe(name, callback) = subscribers << [name, callback]
          def instrument(name, payload)
            start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
            yield if block_given?
          ensure
            finish = Process.clock_gettime(Process::CLOCK_MONOTONIC)
            subscribers.each { |wanted, callback| callback.call(name, start, finish, "id", payload) if wanted == name }
          end
        end
      end
    end
    def query(sql, **payload, &block) = ActiveSupport::Notifications.instrument("sql.active_record", { sql: sql, **payload }, &block)
  RUBY
  # As a gem's code, which asks for the application.
  LOAD = "eval(#{NOTIFICATIONS.inspect}, TOPLEVEL_BINDING, '/srv/gems/activesupport-8.1.0/notifications.rb')\nActiveSupport::Notifications.notifier = true\n"

  def queries(segments = read.segments) = Pitwall::Analyse::Queries.new(Array(segments))

  # Line of the program → count, times requests, most.
  def by_line(segments = read.segments)
    queries(segments).rows.group_by(&:line).transform_values { |rows| [rows.sum(&:count), rows.sum(&:requests), rows.map(&:most).max] }
  end

  def work(route) = read.segments.flat_map { |segment| segment.works.select { |one| segment.labels(one.label_id)["route"] == route } }

  # As Sequel is there: its method is made within a require. What other Ractors ask is not counted, and goes through.
  def test_another_ractor
    File.write(file("sequel.rb"), "module Sequel; class Database; def log_connection_yield(sql, conn, args = nil) = yield; end; end\n")
    File.write(file("loads_sequel.rb"), "require_relative 'sequel'\nrequire_relative 'after_sequel'\n")
    File.write(file("after_sequel.rb"), "nil\n")
    out = run_program(<<~RUBY, options: ["-W0"])
      record do
        require "./loads_sequel"
        ask = ->(database) { database.log_connection_yield("SELECT 1", nil) { 7 } }
        2.times { ask.(Sequel::Database.new) }
        others = Array.new(2) { Ractor.new { Array.new(500) { |id| Sequel::Database.new.log_connection_yield("SELECT \#{id}", nil) { 1 } }.sum } }
        200.times { ask.(Sequel::Database.new) }
        puts others.map { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }.sum
      end
    RUBY
    assert_equal "1000", out.strip
    assert_equal 202, queries.rows.sum(&:count)
  end

  def test_threads
    run_program(<<~RUBY)
      #{LOAD.lines.join("; ").delete("\n")}
      record do
        threads = Array.new(8) do |number|
          Thread.new do
            50.times do
              Pitwall.request(route: "r\#{number % 2}") { 10.times { |id|
                query("SELECT \#{id}") { Thread.pass } } }
            end
          end
        end
        threads.each(&:join)
      end
    RUBY
    assert_equal [[4000, 400, 10]], by_line.values
    rows = queries.rows(Pitwall::Analyse::Selection.new(labels: { "route" => "r1" }))
    assert_equal [[2000, 200, 10]], rows.map { |row| [row.count, row.requests, row.most] }
    requests = Pitwall::Analyse::Requests.new(read.segments).rows
    refute_empty requests
    assert_equal [[10, 10]], requests.map { |row| Pitwall::Analyse::Queries.sum(queries.of_request(row)).then { |sum| [sum.count, sum.repeats] } }.uniq
  end

  # A request's queries are its own, also where fibers take turns, and a fiber that it creates is part of it where Ruby lets fibers inherit.
  def test_fibers
    run_program(<<~RUBY)
      #{LOAD.lines.join("; ").delete("\n")}
      record do
        fibers = [3, 5].map do |times|
          Fiber.new { Pitwall.request(route: "fiber \#{times}") { times.times { query("SELECT 1"); Fiber.yield } } }
        end
        8.times { fibers.each { |fiber| fiber.resume if fiber.alive? } }
        Pitwall.request(route: "outer") { Fiber.new { query("SELECT 2") }.resume }
        enumerator = nil
        Pitwall.request(route: "gone") { enumerator = Fiber.new { Fiber.yield; query("SELECT 3") }; enumerator.resume }
        enumerator.resume
      end
    RUBY
    of = lambda do |route|
      queries.rows(Pitwall::Analyse::Selection.new(labels: { "route" => route })).map { |row| [row.count, row.requests, row.most] }
    end
    assert_equal [[[3, 1, 3]], [[5, 1, 5]]], [of.("fiber 3"), of.("fiber 5")]
    inherits = Fiber.respond_to?(:[])
    assert_equal inherits ? [[1, 1, 1]] : [], of.("outer")
    assert_equal 10, by_line.values.sum(&:first)
    assert_equal 0, queries.rows.find { |row| row.line == 9 }.requests, "of no request any more"
  end

  def test_forked_children
    run_program(<<~RUBY)
      #{LOAD.lines.join("; ").delete("\n")}
      start
      Pitwall.request(route: "a") do
        query("SELECT 1")
        2.times { Process.wait(fork { Pitwall.request(route: "b") { 3.times { query("SELECT 2") } } }) }
        query("SELECT 1")
      end
      stop
    RUBY
    all = Dir[file("*.pit")].flat_map { |path| Pitwall::Record.read(path).segments }
    assert_equal 3, all.size
    assert_equal({ 4 => [1, 1, 1], 5 => [6, 2, 3], 6 => [1, 1, 1] }, by_line(all))
  end

  # Loaded while it is recorded, before, and never.
  def test_when_it_is_loaded
    run_program(<<~RUBY)
      record do
        module ActiveSupport; autoload :Notifications, "./nowhere"; end
        eval("1")
        ActiveSupport.send(:remove_const, :Notifications)
        #{LOAD.sub("ActiveSupport::Notifications.notifier = true", "eval('1'); raise 'early' unless ActiveSupport::Notifications.subscribers.empty?; ActiveSupport::Notifications.notifier = true").lines.join("; ").delete("\n")}
        eval("1")
        query("SELECT 1")
      end
      query("SELECT 2")
      record("b.pit") { query("SELECT 3") }
      raise unless ActiveSupport::Notifications.subscribers.size == 1
    RUBY
    assert_equal({ 7 => [1, 0, 0] }, by_line)
    assert_equal({ 10 => [1, 0, 0] }, by_line(read("b.pit").segments))
  end

  # What is not as expected changes nothing but what is counted.
  def test_odd_queries
    out = run_program(<<~RUBY)
      #{LOAD.lines.join("; ").delete("\n")}
      def notify(*arguments) = ActiveSupport::Notifications.subscribers.each { |_, callback| print callback.call(*arguments).inspect }
      record do
        notify(nil, nil, nil, nil, nil)
        notify("sql.active_record", 1, 2, 3, { sql: nil })
        notify("sql.active_record", 1.0, Float::NAN, 3, { sql: "SELECT 1" })
        notify("sql.active_record", 2.0, 1.0, 3, { sql: "SELECT 1".b.freeze, name: :Load, cached: false }.freeze)
        notify("sql.active_record", 1.0, Float::INFINITY, 3, { sql: "\\xff'".dup.force_encoding("UTF-8"), name: "SCHEMA" })
        notify("sql.active_record", 1.0, 2.0, 3, Hash.new { raise "default" })
        notify("sql.active_record", 1.0, 2.0, 3, { sql: "" })
        begin
          query("SELECT 2") { raise "its own" }
        rescue RuntimeError => error
          print error.message
        end
        print catch(:out) { query("SELECT 3") { throw :out, " thrown" } }
        Thread.new { query("SELECT 4") { Thread.current.kill } }.join
        Pitwall.request(route: "a") { query("SELECT 5"); raise "its own" } rescue print error.message
        Pitwall::Collect::Queries.define_singleton_method(:application?) { |_| raise "broken" }
        eval("query('SELECT 6')", binding, "/srv/app/other.rb", 1)
      end
    RUBY
    assert_equal "#{"nil" * 7}its own thrownits own", out
    assert_equal 9, queries.rows.sum(&:count), "all that have a text"
    assert_equal 1, queries.rows.count(&:schema?)
    assert_equal 1, segment.stat("queries_failed")
    assert_match(/1 times a database query could not be counted/, Pitwall::Analyse::Summary.new(read.segments).notes.join)
    assert_operator queries.rows.map(&:ns).max, :<, 1 << 60
  end

  # Recordings begin and end, again and again, while other threads send queries.
  def test_recordings_that_begin_and_end_meanwhile
    run_program(<<~RUBY)
      #{LOAD.lines.join("; ").delete("\n")}
      record("0.pit") { }
      threads = Array.new(4) do
        Thread.new { Pitwall.request(route: "long") { 20.times { |id| query("SELECT \#{id}"); Thread.pass } } until Thread.current[:end] }
      end
      20.times do |number|
        record("a.pit") { burn(0.005) }
        record("b.pit") { Pitwall.pause; query("SELECT 1"); Pitwall.resume; query("SELECT 2") }
      end
      threads.each { |thread| thread[:end] = true }.each(&:join)
    RUBY
    read.segments.each { |segment| segment.query_sums.each { |sum| assert segment.queries.key?(sum.query_id), "a number of another recording" } }
    own = queries(read("b.pit").segments).rows.reject { |row| row.line == 4 }
    assert_equal [1], own.map(&:count)
  end

  def test_bounds
    run_program(<<~RUBY)
      #{LOAD.lines.join("; ").delete("\n")}
      record do
        Pitwall.request(route: "many") { 400.times { |id| query("SELECT a\#{id}") } }
        18_000.times { |id| query("SELECT b\#{id}") }
        query("SELECT " + "1, " * 200_000 + "1")
      end
    RUBY
    assert_operator segment.queries.size, :<=, 16_384
    assert_equal 18_401, queries.rows.sum(&:count), "those without a number of their own are counted, too"
    assert_operator segment.stat("queries_left_out"), :>, 0
    assert_equal 400, queries.rows(Pitwall::Analyse::Selection.new(labels: { "route" => "many" })).sum(&:count)
    assert_equal 256, segment.query_parts.each_value.first.size
    assert_match(/more different queries than a recording holds/, Pitwall::Analyse::Summary.new(read.segments).notes.join)
  end

  def test_continuous_recording
    run_program(<<~RUBY)
      #{LOAD.lines.join("; ").delete("\n")}
      Pitwall.continuous(dir: "d", rate: 100, mode: "signal")
      3.times { Pitwall.request(route: "a") { 4.times { query("SELECT 1") } } }
    RUBY
    all = Dir[file("d/*.pit")].flat_map { |path| Pitwall::Record.read(path).segments }
    assert_equal({ 3 => [12, 3, 4] }, by_line(all))
  end

  # Objects that counting makes are not the program's.
  def test_objects_are_not_the_programs
    run_program(<<~RUBY)
      #{LOAD.lines.join("; ").delete("\n")}
      PAYLOAD = { sql: "SELECT 1" }
      NAMES = ["sql.active_record", "id"]
      CALLBACK = ActiveSupport::Notifications.subscribers
      Pitwall.allocations(record: "0.pit") { }
      callback = CALLBACK.first.last
      Pitwall.allocations(record: "a.pit") { 500.times { callback.call(NAMES[0], 1.0, 2.0, NAMES[1], PAYLOAD) } }
    RUBY
    assert_operator Pitwall::Analyse::Allocations.new(read.segments).objects, :<, 100
    assert_equal 500, by_line.values.sum(&:first)
  end

  def test_stress
    run_program(<<~RUBY)
      #{LOAD.lines.join("; ").delete("\n")}
      record do
        GC.stress = true
        2.times { |number| Pitwall.request(route: "a") { 5.times { |id| query("SELECT \#{id} FROM t\#{number}") } } }
        GC.stress = false
        GC.verify_compaction_references rescue nil
        3.times { query("SELECT 1") }
      end
    RUBY
    assert_equal 13, queries.rows.sum(&:count)
  end
end
