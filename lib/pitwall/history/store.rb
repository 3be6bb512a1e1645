# frozen_string_literal: true

require "fileutils"
require "time"
require "pitwall/errors"
require "pitwall/history/address"
require "pitwall/history/run"
require "pitwall/history/schema"

module Pitwall
  module History
    # The results of projects in a database: SQLite or PostgreSQL, both through Sequel.
    class Store
      # The database can't be reached, or did not take the results. Nothing of them was saved.
      class Unavailable < CannotMeasure; end

      # Gems of the adapters, which are loaded when they are used.
      GEMS = { true => "sqlite3", false => "pg" }.freeze
      # Seconds that a writer waits for another one, and for the connection (PostgreSQL).
      WAIT = 30
      CONNECT = 10
      # Minutes that a statement may take (PostgreSQL).
      STATEMENT = 10
      # Of libpq: a server that is gone is noticed after this time, in seconds and milliseconds.
      GONE = { keepalives_idle: WAIT, keepalives_interval: 10, keepalives_count: 3,
               tcp_user_timeout: 2 * WAIT * 1000 }.freeze
      SETTINGS = ["TIME ZONE 'UTC'", "lock_timeout = '#{WAIT}s'", "statement_timeout = '#{STATEMENT}min'"].freeze
      # Rows of one INSERT. SQLite has a limit for the values of a statement.
      SLICE = 400
      # Attempts of a transaction that the database ended because of another one.
      ATTEMPTS = 5
      private_constant :GEMS, :WAIT, :CONNECT, :STATEMENT, :GONE, :SETTINGS, :SLICE, :ATTEMPTS

      class << self
        # @param create whether a missing file is created
        # @yield [Store] and closes the connection afterwards
        # @raise [Unavailable, BadRecording, UsageError]
        #: [T] (Address, ?create: bool) { (Store) -> T } -> T
        def open(address, create: false)
          prepare(address, create)
          database = connect(address)
          yield new(database, address).tap(&:migrate)
        ensure
          close(database)
        end

        private

        def prepare(address, create)
          return unless address.sqlite?
          raise UsageError, "#{address.path}: no history there; add results to it first" unless create ||
                                                                                        File.file?(address.path)
          raise UsageError, "#{address.path}: a folder; name a file" if File.directory?(address.path)

          FileUtils.mkdir_p(File.dirname(address.path))
        rescue SystemCallError => error
          raise Unavailable, "#{address.path}: #{SystemCallError.new(error.errno).message}"
        end

        def connect(address)
          require "sequel"
          address.sqlite? ? sqlite(address) : postgres(address)
        rescue LoadError
          raise CannotMeasure, "the gem sequel is missing: gem install sequel"
        rescue Sequel::AdapterNotFound
          name = GEMS.fetch(address.sqlite?)
          raise CannotMeasure, "the gem #{name} is missing: gem install #{name}"
        rescue Sequel::Error => error
          raise Unavailable, "#{address}: #{address.clean(error.message)}"
        end

        def sqlite(address)
          Sequel.connect(adapter: "sqlite", database: address.path, timeout: WAIT * 1000, max_connections: 1)
        end

        def postgres(address)
          Sequel.connect(address.url, connect_timeout: CONNECT, max_connections: 1, client_min_messages: nil,
                                      driver_options: GONE, after_connect: lambda do |connection|
                                        SETTINGS.each { |setting| connection.exec("SET #{setting}") }
                                      end)
        end

        def close(database)
          database&.disconnect
          Sequel::DATABASES.delete(database) if database
        end
      end

      # @return [Address]
      attr_reader :address

      # @api private
      def initialize(database, address)
        @database = database
        @address = address
      end

      # @api private
      #: () -> void
      def migrate = guarded { Schema.migrate(@database) }

      # Adds runs, all or none. Runs that are there already are left as they are.
      # @return the number of new runs
      # @raise [Unavailable] nothing was added
      #: (String, Array[Run]) -> Integer
      def add(project, runs)
        # The order of rows is the same for all writers, so that none waits for another in a circle.
        runs = runs.uniq(&:id).sort_by(&:id)
        now = Time.now.utc.iso8601
        guarded do
          transaction do
            known = @database[:runs].where(project_id: project, run_id: runs.map(&:id)).select_map(:run_id)
            fresh = runs.reject { |run| known.include?(run.id) }
            insert(:projects, [{ project_id: project, added_at: now }])
            insert(:hosts, fresh.map { |run| host(project, run) }.uniq.sort_by { |row| row[:host_id] })
            figures = fresh.flat_map(&:figures)
            insert(:series, figures.map { |figure| series_row(project, figure) }.uniq.sort_by { |row| row[:series_id] })
            insert(:runs, fresh.map { |run| run_row(project, run, now) })
            insert(:results, fresh.flat_map { |run| results(project, run) })
            fresh.size
          end
        end
      end

      # Names of the projects.
      #: () -> Array[String]
      def projects = guarded { @database[:projects].order(:project_id).select_map(:project_id) }

      # What a project has: one row for each series and host, the newest first.
      # @param filters columns of `series` or host_id → value
      # @param mixed whether all hosts are one
      # @return [Array<Hash>] series_id, suite, benchmark, variant, metric, unit, better, host_id (nil if mixed), count,
      #   first_at, last_at
      #: (String, ?mixed: bool, **untyped) -> Array[Hash[Symbol, untyped]]
      def series(project, mixed: false, **filters)
        guarded do
          host, filters = filters[:host_id], filters.reject { |name, _| name == :host_id }
          described = @database[:series].where(project_id: project, **filters).as_hash(:series_id)
          groups(project, host, mixed).filter_map do |row|
            found = described[row[:series_id]] and found.merge(host_id: nil, **row)
          end.sort_by { |row| [row[:metric], row[:suite], row[:benchmark], row[:variant], row[:host_id].to_s] }
        end
      end

      # The hosts of a project by their id: cpu, cores, memory_bytes, governor.
      #: (String) -> Hash[String, Hash[Symbol, untyped]]
      def hosts(project)
        guarded { @database[:hosts].where(project_id: project).as_hash(:host_id) }.transform_values do |row|
          row.slice(:cpu, :cores, :memory_bytes, :governor)
        end
      end

      # A series' results by time, the newest `last` of them.
      # @param host nil: of all hosts
      # @return [Array<Hash>] run_id, measured_at, value, low, high, commit_id, ruby, host_id
      #: (String, String, ?host: String?, ?last: Integer) -> Array[Hash[Symbol, untyped]]
      def points(project, series_id, host: nil, last: 1000)
        guarded do
          key = { project_id: project, series_id: series_id, host_id: host }.compact
          newest = @database[:results].where(key).reverse(:measured_at, :run_id).limit(last)
          at = time(Sequel[:results][:measured_at])
          newest.from_self(alias: :results)
                .join(:runs, project_id: Sequel[:results][:project_id], run_id: Sequel[:results][:run_id])
                .order(Sequel[:results][:measured_at], Sequel[:results][:run_id])
                .select(Sequel[:results][:run_id], at.as(:measured_at), :value, :low, :high,
                        Sequel[:results][:host_id], :commit_id, :ruby).all
        end
      end

      # Every result of a project with what belongs to it, by time: what an export has.
      # @yield [Hash]
      #: (String, **untyped) { (Hash[Symbol, untyped]) -> void } -> void
      def each_result(project, **filters, &block)
        guarded do
          rows = @database[:pitwall_points].where(project: project, **filters)
          columns = %i[suite benchmark variant metric unit better host value low high commit_id branch ruby]
          rows.order(:measured_at, :suite, :benchmark, :variant, :metric, :host, :commit_id)
              .select(time(Sequel[:measured_at]).as(:measured_at), *columns).each(&block)
        end
      end

      # Change points as the last analysis found them, by time.
      #: (String, ?series: Array[String]?) -> Array[Hash[Symbol, untyped]]
      def change_points(project, series: nil)
        guarded do
          rows = @database[:change_points].where(project_id: project)
          rows = rows.where(series_id: series) if series
          rows.order(:measured_at, :series_id, :host_id)
              .select(:series_id, :host_id, :run_id, time(Sequel[:measured_at]).as(:measured_at), :before, :after,
                      :ratio, :p_value).all
        end
      end

      # Series and hosts that have other results than at their last analysis.
      # @param method name of the analysis
      # @return [Array<Hash>] series_id, host_id, count
      #: (String, String, ?series: Array[String]?) -> Array[Hash[Symbol, untyped]]
      def unanalysed(project, method, series: nil)
        guarded do
          known = @database[:analyses].where(project_id: project, method: method)
                                      .select_hash(%i[series_id host_id], :results)
          found = groups(project, nil, false).reject { |row| known[row.values_at(:series_id, :host_id)] == row[:count] }
          series ? found.select { |row| series.include?(row[:series_id]) } : found
        end
      end

      # Replaces the change points of a series. Of two analyses the one of more results stays.
      # @param count number of results that were analysed
      # @param changes [Array<Hash>] run_id, measured_at, before, after, ratio, p_value
      #: (String, String, String, method: String, count: Integer, changes: Array[Hash[Symbol, untyped]]) -> void
      def keep_analysis(project, series_id, host_id, method:, count:, changes:)
        key = { project_id: project, series_id: series_id, host_id: host_id }
        guarded do
          transaction do
            newer = Sequel[:analyses][:results] <= count
            @database[:analyses].insert_conflict(target: key.keys, update: { results: count, method: method },
                                                 update_where: newer).insert(**key, results: count, method: method)
            next unless @database[:analyses].where(key).get(:results) == count

            @database[:change_points].where(key).delete
            insert(:change_points, changes.map { |change| key.merge(change) })
          end
        end
      end

      private

      # Group by series and host, from the index alone.
      def groups(project, host, mixed)
        rows = @database[:results].where(project_id: project)
        rows = rows.where(host_id: host) if host
        keys = mixed ? [:series_id] : %i[series_id host_id]
        rows.group(*keys).select(*keys, Sequel.function(:count, Sequel.lit("*")).as(:count),
                                 Sequel.function(:min, :measured_at).as(:first_at),
                                 Sequel.function(:max, :measured_at).as(:last_at))
            .all.each { |row| %i[first_at last_at].each { |name| row[name] = iso(row[name]) } }
      end

      # The column as text, which both databases write alike.
      def time(column)
        return column unless @database.database_type == :postgres

        Sequel.function(:to_char, column, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
      end

      def iso(time) = time.respond_to?(:utc) ? time.utc.iso8601 : time

      # Skips rows that are there.
      def insert(table, rows)
        rows.each_slice(SLICE) do |slice|
          @database[table].insert_conflict.multi_insert(slice)
        end
      end

      def host(project, run)
        { project_id: project, host_id: run.host_id, **run.fingerprint.transform_keys(&:to_sym) }
      end

      def series_row(project, figure)
        { project_id: project, series_id: figure.series_id,
          **figure.to_h.slice(:suite, :benchmark, :variant, :metric, :unit, :better) }
      end

      def run_row(project, run, now)
        { project_id: project, run_id: run.id, host_id: run.host_id, added_at: now,
          **run.to_h.slice(:measured_at, :commit_id, :branch, :ruby, :kernel, :side, :command, :tool) }
      end

      def results(project, run)
        rows = run.figures.map do |figure|
          { project_id: project, series_id: figure.series_id, run_id: run.id, host_id: run.host_id,
            measured_at: run.measured_at, **figure.to_h.slice(:value, :low, :high, :processes) }
        end
        rows.uniq { |row| row[:series_id] }.sort_by { |row| row[:series_id] }
      end

      # Again where the database ended the transaction because of another writer.
      def transaction(&block)
        tries = 0
        begin
          options = @database.database_type == :postgres ? {} : { mode: :immediate }
          @database.transaction(**options, &block)
        rescue Sequel::SerializationFailure, Sequel::DatabaseLockTimeout
          tries += 1
          tries < ATTEMPTS ? retry : raise
        end
      end

      # Errors of drivers become one line without secrets.
      def guarded
        yield
      rescue Sequel::Error => error
        text = @address.clean(error.wrapped_exception&.message || error.message)
        raise BadRecording, "#{@address}: no history (#{text})" if text.match?(/not a database|malformed/)

        raise Unavailable, "#{@address}: #{text}"
      end
    end
  end
end
