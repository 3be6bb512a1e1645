# frozen_string_literal: true

require "tmpdir"
require_relative "../support/clocks"
require_relative "../support/result"
require_relative "../support/statistics"

module Benchmarks
  module Compare
    # How long `pitwall compare A.pit B.pit --view structure` takes for two recordings of 1,000,000 rows each, whose
    # stacks have up to 200 frames. The recordings are made from a seed. The time is of the whole command.
    class Structure
      ROUNDS = 3
      ROWS = 1_000_000
      GOAL_S = 15
      MAKE = File.expand_path("../../test/support/big_recording.rb", __dir__)
      COMMAND = ["-I", File.join(ROOT, "lib"), "-r", File.join(ROOT, "script/checkout"),
                 "-e", "Checkout.use_vendored_gems; load File.join(Checkout::ROOT, 'exe/pitwall')", "--"].freeze
      # The second has other stacks: more of them, and less deep.
      SIDES = { "a.pit" => [20_000, 200], "b.pit" => [21_000, 180] }.freeze
      VIEWS = { "--view structure" => %w[--view structure], "--view methods" => [] }.freeze
      private_constant :ROUNDS, :ROWS, :GOAL_S, :MAKE, :COMMAND, :SIDES, :VIEWS

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        Dir.mktmpdir("structure-") do |folder|
          files = SIDES.map { |name, shape| File.join(folder, name).tap { |file| make(file, shape) } }
          runs = VIEWS.transform_values { |options| Array.new(@context.rounds(ROUNDS)) { compare(files, options) } }
          Result.new(tables: [table(runs)], goals: [goal(runs.fetch("--view structure"))], notes: @context.notes,
                     data: { rows: ROWS, runs: runs })
        end
      end

      private

      def make(file, shape)
        made = system(RbConfig.ruby, MAKE, file, ROWS.to_s, *shape.map(&:to_s), out: File::NULL, err: File::NULL)
        raise Context::Failure, "#{MAKE} failed: #{$?}" unless made
      end

      def compare(files, options)
        spent = Clocks.spent do
          system(RbConfig.ruby, *COMMAND, "compare", *files, *options, out: File::NULL, exception: true)
        end
        spent[:wall_ns]
      end

      def table(runs)
        rows = runs.map do |name, walls|
          [name, Statistics.median(walls.map { |wall| wall / 1e9 }).round(1), (walls.max / 1e9).round(1)]
        end
        Table.new("two recordings of #{ROWS} rows", ["compare", "wall, s (median)", "slowest"], rows)
      end

      def goal(walls)
        seconds = Statistics.median(walls.map { |wall| wall / 1e9 })
        Goal.new("call paths of two recordings of 1,000,000 rows are compared within #{GOAL_S} s",
                 "#{seconds.round(1)} s", seconds <= GOAL_S)
      end
    end
  end
end
