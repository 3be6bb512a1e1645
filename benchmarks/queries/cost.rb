# frozen_string_literal: true

require_relative "../support/context"
require_relative "../support/result"
require_relative "../support/shop"
require_relative "../support/statistics"

module Benchmarks
  module Queries
    # What counting queries costs: small queries by primary key to SQLite in memory, in requests of twenty, with
    # ActiveRecord and with Sequel. One process alternates recorded and unrecorded turns. The recording takes no samples
    # and does not tell collections apart. With ActiveRecord both also run without the subscriber.
    class Cost
      LIBRARIES = %w[active_record sequel].freeze
      TURNS = 40
      MOST_NS = 5000
      OLD = RUBY_VERSION < "3.2"
      GEMFILE = File.join(Shop::FOLDER, "gemfiles", "#{OLD ? "rails_7_2" : "rails_8_1"}.gemfile")
      private_constant :LIBRARIES, :TURNS, :MOST_NS, :OLD, :GEMFILE

      # Prints ns a query of each state, a line a turn. The query is asked by a method 30 frames below the request.
      CHILD = <<~'RUBY'
        require "bundler/setup"
        $LOAD_PATH.unshift(ARGV[0])
        require "pitwall"
        library, requests, turns, file = ARGV[1], Integer(ARGV[2]), Integer(ARGV[3]), ARGV[4]
        if library == "sequel"
          require "sequel"
          db = Sequel.sqlite
          db.create_table(:authors) { primary_key :id; String :name }
          50.times { |number| db[:authors].insert(name: "author #{number}") }
          ask = ->(id) { db[:authors].first(id: id) }
        else
          require "active_record"
          ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:")
          ActiveRecord::Schema.verbose = false
          ActiveRecord::Schema.define { create_table(:authors) { |table| table.string :name } }
          class Author < ActiveRecord::Base; end
          50.times { |number| Author.create!(name: "author #{number}") }
          ask = ->(id) { Author.find_by(id: id) }
        end
        define_method(:below) { |depth, &block| depth.zero? ? block.call : below(depth - 1, &block) }
        timed = lambda do
          began = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
          requests.times { Pitwall.request(route: "a") { below(30) { 20.times { |id| ask.call(id + 1) } } } }
          (Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) - began).fdiv(requests * 20)
        end
        Pitwall.profile(record: file, mode: "none") { timed.call }
        subscription, subscriber = Pitwall::Collect::Queries.subscription, Pitwall::Collect::Queries::Subscriber
        notifications = library == "sequel" ? nil : ActiveSupport::Notifications
        states = notifications ? %w[never off bare on] : %w[off on]
        turns.times do
          took = states.shuffle.to_h do |state|
            recorded, unseen = %w[bare on].include?(state), %w[never bare].include?(state)
            Pitwall.start(record: file, mode: "none", gc: false) if recorded
            notifications.unsubscribe(subscription) if unseen
            2.times { timed.call } # a recording's first moments are its own
            GC.start
            ns = timed.call
            Pitwall.stop if recorded
            subscription = notifications.monotonic_subscribe("sql.active_record", subscriber) if unseen
            [state, ns]
          end
          puts took.values_at("never", "off", "bare", "on").join(" ")
        end
      RUBY
      private_constant :CHILD

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        unless Shop.prepared?(gemfile: GEMFILE)
          return Result.new(tables: [table({})], goals: [Goal.not_measured(goal_text)], notes: [Shop::MISSING],
                            data: {})
        end

        found = LIBRARIES.to_h { |library| [library, time(library)] }
        goals = found.map { |library, turns| goal(library, turns) }
        Result.new(tables: [table(found)], goals: goals, notes: [], data: found)
      end

      private

      # @return [Array<Hash>] ns a query by state, one a turn
      def time(library)
        @context.scratch("queries-#{library}") do |file|
          requests, turns = @context.quick? ? [5, 1] : [100, @context.rounds(TURNS)]
          words = [RbConfig.ruby, "-W0", "-e", CHILD, File.join(ROOT, "lib"), library, requests.to_s, turns.to_s, file]
          output = IO.popen([Shop.environment(gemfile: GEMFILE), *words], &:read)
          raise Context::Failure, "the process that asks with #{library} failed" unless $?.success?

          output.lines.map do |line|
            times = line.chomp.split(%r{ }, -1)
            %w[never off bare on].zip(times).to_h { |state, ns| [state, ns.to_s.empty? ? nil : Float(ns)] }
          end
        end
      end

      # Where the counting alone can't be left out, of the recording as a whole.
      def added(turns) = Statistics.estimate(turns.map { |turn| turn["on"] - (turn["bare"] || turn["off"]) })

      def idle(turns) = Statistics.estimate(turns.map { |turn| turn["off"] - turn["never"] })

      # As if Pitwall were not there, as far as that can be had.
      def first(turn) = turn["never"] || turn["off"]

      def ratio(turns)
        Statistics.ratio(turns.map { |turn| turn["on"] / first(turn) })
      end

      def table(found)
        rows = found.map do |library, turns|
          off = turns.first["never"] ? show(idle(turns), "%d") : ""
          without = Statistics.estimate(turns.map { |turn| first(turn) })
          [library, show(without, "%d"), off, show(added(turns), "%d"), show(ratio(turns), "%.3f")]
        end
        headings = ["library", "without", "added, not recorded", "added by counting", "ratio, recorded to not"]
        Table.new("a query by primary key, ns of CPU time (95% intervals)", headings, rows)
      end

      def goal_text = "a counted query costs at most #{MOST_NS / 1000} µs"

      def goal(library, turns)
        estimate = added(turns)
        return Goal.not_measured("#{goal_text} (#{library})") unless estimate.high&.finite?

        Goal.at_most("#{goal_text} (#{library})", "#{show(estimate, "%d")} ns", estimate, MOST_NS)
      end

      def show(estimate, form)
        return format(form, estimate.point) unless estimate.high&.finite?

        format("#{form} (#{form} … #{form})", estimate.point, estimate.low, estimate.high)
      end
    end
  end
end
