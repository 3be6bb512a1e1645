# frozen_string_literal: true

require "pitwall/errors"

module Pitwall
  module History
    # The tables and views of a history, and how an older history becomes a newer one. A step is never changed once it
    # is released: a change of the schema is one more step. doc/history.md describes the result.
    #
    # Every key begins with the project, so that the tables of many projects can be divided among databases by it. No
    # key comes from a sequence: ids are digests of what they name, the same for every writer.
    module Schema
      class << self
        # Number of the newest schema.
        #: () -> Integer
        def newest = STEPS.size

        # Number of a database's schema; 0 without one.
        #: (untyped) -> Integer
        def number(database) = database.table_exists?(:pitwall_schema) ? database[:pitwall_schema].max(:number).to_i : 0

        # Brings a database up to date, all or nothing. Writers that do so at once wait for each other.
        # @raise [BadRecording] the schema is newer than this Pitwall
        #: (untyped, ?to: Integer) -> void
        def migrate(database, to: newest)
          return if check(number(database)) >= to

          exclusively(database) do
            database.create_table?(:pitwall_schema) { Integer :number, primary_key: true }
            (check(number(database)) + 1).upto(to) do |step|
              Schema.public_send(STEPS.fetch(step - 1), database)
              database[:pitwall_schema].insert(number: step)
            end
          end
        end

        # @raise [BadRecording]
        #: (Integer) -> Integer
        def check(number)
          return number if number <= newest

          raise BadRecording, "the history has schema #{number}, made by a newer Pitwall; this one knows #{newest}: " \
                              "install the newer one"
        end

        # Step 1: what was measured.
        # @api private
        def create_tables(database)
          time = time_type(database)
          database.create_table(:projects) do
            column :project_id, :text, primary_key: true
            column :added_at, time, null: false
          end
          database.create_table(:hosts) do
            column :project_id, :text, null: false
            column :host_id, :text, null: false
            column :cpu, :text
            column :cores, :integer
            column :memory_bytes, :bigint
            column :governor, :text
            primary_key %i[project_id host_id]
          end
          database.create_table(:series) do
            column :project_id, :text, null: false
            column :series_id, :text, null: false
            column :suite, :text, null: false
            column :benchmark, :text, null: false
            column :variant, :text, null: false
            column :metric, :text, null: false
            column :unit, :text, null: false
            column :better, :text, null: false
            primary_key %i[project_id series_id]
          end
          database.create_table(:runs) do
            column :project_id, :text, null: false
            column :run_id, :text, null: false
            column :host_id, :text, null: false
            column :measured_at, time, null: false
            column :added_at, time, null: false
            column :commit_id, :text
            column :branch, :text
            column :ruby, :text
            column :kernel, :text
            column :side, :text
            column :command, :text
            column :tool, :text
            primary_key %i[project_id run_id]
          end
          database.create_table(:results) do
            column :project_id, :text, null: false
            column :series_id, :text, null: false
            column :run_id, :text, null: false
            column :host_id, :text, null: false
            column :measured_at, time, null: false
            column :value, "double precision", null: false
            column :low, "double precision"
            column :high, "double precision"
            column :processes, :integer
            primary_key %i[project_id series_id run_id]
            index %i[project_id series_id host_id measured_at run_id], name: :results_by_time
          end
        end

        # Step 2: change points, as the last analysis of each series found them.
        # @api private
        def create_change_points(database)
          time = time_type(database)
          database.create_table(:analyses) do
            column :project_id, :text, null: false
            column :series_id, :text, null: false
            column :host_id, :text, null: false
            column :results, :integer, null: false
            column :method, :text, null: false
            primary_key %i[project_id series_id host_id]
          end
          database.create_table(:change_points) do
            column :project_id, :text, null: false
            column :series_id, :text, null: false
            column :host_id, :text, null: false
            column :run_id, :text, null: false
            column :measured_at, time, null: false
            column :before, "double precision", null: false
            column :after, "double precision", null: false
            column :ratio, "double precision"
            column :p_value, "double precision", null: false
            primary_key %i[project_id series_id host_id run_id]
          end
        end

        # Step 3: views for dashboards.
        # @api private
        def create_views(database)
          database.run(<<~SQL)
            CREATE VIEW pitwall_points AS
            SELECT r.project_id AS project, s.suite, s.benchmark, s.variant, s.metric, s.unit, s.better,
                   r.host_id AS host, r.measured_at, r.value, r.low, r.high, u.commit_id, u.branch, u.ruby
            FROM results r
            JOIN series s ON s.project_id = r.project_id AND s.series_id = r.series_id
            JOIN runs u ON u.project_id = r.project_id AND u.run_id = r.run_id
          SQL
          database.run(<<~SQL)
            CREATE VIEW pitwall_changes AS
            SELECT c.project_id AS project, s.suite, s.benchmark, s.variant, s.metric, s.unit, s.better,
                   c.host_id AS host, c.measured_at, c.before, c.after, c.ratio, c.p_value, u.commit_id, u.branch, u.ruby
            FROM change_points c
            JOIN series s ON s.project_id = c.project_id AND s.series_id = c.series_id
            JOIN runs u ON u.project_id = c.project_id AND u.run_id = c.run_id
          SQL
        end

        private

        # SQLite has no type for times. Text in ISO 8601, always in UTC, sorts by time.
        def time_type(database) = database.database_type == :postgres ? "timestamptz" : :text

        LOCK = 0x7069747761 # "pitwa", the number of a lock that nobody else has
        private_constant :LOCK

        def exclusively(database)
          if database.database_type == :postgres
            database.transaction do
              database.get(Sequel.function(:pg_advisory_xact_lock, LOCK))
              yield
            end
          else
            database.transaction(mode: :immediate) { yield }
          end
        end
      end

      # One method for each number of the schema.
      STEPS = %i[create_tables create_change_points create_views].freeze
      private_constant :STEPS
    end
  end
end
