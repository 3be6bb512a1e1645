# frozen_string_literal: true

require_relative "../support/rounds"
require_relative "../support/result"
require_relative "../support/share_errors"
require_relative "../support/statistics"

module Benchmarks
  module Sampler
    # How far a profile is from the truth. The truth programs measure what each of their sections really took. A
    # section's share in a profile is the weight of all samples below its method divided by the weight of everything.
    #
    # The error of a section is the mean over the rounds of (its share in the profile − its true share), in percentage
    # points. A profiler's largest error is the error of its worst section. The worst section of a single round is
    # printed too: it includes the chance of sampling, which a mean over rounds does not.
    class Accuracy
      # program => the method that holds all that counts, nil for the whole profile
      PROGRAMS = { "truth" => nil, "truth_threads" => "worker" }.freeze
      CASES = %w[pitwall_signal pitwall_native pitwall_outside pitwall_safepoint stackprof_wall stackprof_cpu vernier
                 pf2_wall pf2_cpu].freeze
      # Those that are used unasked, and with native frames.
      JUDGED = %w[pitwall_signal pitwall_native pitwall_outside].freeze
      INTERVAL_NS = 1_000_000
      ROUNDS = 7
      SECONDS = 2
      GOAL_POINTS = 0.3
      GOAL_CPU_PERCENT = 1.0
      private_constant :PROGRAMS, :CASES, :JUDGED, :INTERVAL_NS, :ROUNDS, :SECONDS, :GOAL_POINTS, :GOAL_CPU_PERCENT

      def initialize(context)
        @context = context
      end

      #: () -> Result
      def call
        @cases = @context.available(CASES)
        errors = PROGRAMS.to_h { |program, whole| [program, errors_of(measure(program), whole)] }
        Result.new(tables: errors.map { |program, found| table(program, found) }, goals: goals(errors),
                   notes: @context.notes,
                   data: errors.map { |program, found| { program: program, cases: found.transform_values(&:to_h) } })
      end

      private

      def seconds = @context.quick? ? 0.1 : SECONDS

      def measure(program)
        job = { measure: "once", truth: true, program: program, interval_ns: INTERVAL_NS, seconds: seconds }
        Rounds.take(@context, @cases, @context.rounds(ROUNDS)) do |name|
          @context.scratch(name) { |out| @context.child(profiler: name, out: out, **job) }
        end
      end

      # { case => ShareErrors }
      def errors_of(rounds, whole)
        @cases.to_h { |name| [name, ShareErrors.new(rounds.filter_map { |round| round[name] }, whole: whole)] }
      end

      def table(program, errors)
        rows = errors.flat_map do |name, found|
          found.weights.map do |weight|
            section, largest = found.largest(weight)
            worst = found.worst_of_rounds(weight)
            cpu = found.thread_cpu_percent
            [name, weight, format("%.2f", largest.abs), format("%s %+.2f", section, largest),
             format("%.2f", Statistics.median(worst)), format("%.2f", worst.max), cpu ? format("%.2f", cpu) : "–"]
          end
        end
        title = "#{program}, #{INTERVAL_NS / 1000} µs, #{@context.rounds(ROUNDS)} rounds of #{seconds} s " \
                "(percentage points)"
        Table.new(title,
                  ["profiler", "weight", "largest error of the mean", "where", "worst section of a round: median",
                   "maximum",
                   "CPU of a thread against its clock: worst, %"], rows)
      end

      def goals(errors)
        errors.to_a.product(JUDGED).flat_map do |(program, cases), name|
          found = cases[name]
          shares = %w[wall cpu].map do |weight|
            error = found.largest(weight).last.abs if found&.weights&.include?(weight)
            text = "#{name}: largest error at most #{GOAL_POINTS} points, #{weight} (#{program})"
            goal(text, error, GOAL_POINTS, "points")
          end
          text = "#{name}: CPU weights of each thread within #{GOAL_CPU_PERCENT}% of its clock (#{program})"
          shares << goal(text, found&.thread_cpu_percent, GOAL_CPU_PERCENT, "%")
        end
      end

      def goal(text, figure, limit, unit)
        return Goal.not_measured(text) if figure.nil? || @context.quick?

        Goal.new(text, format("%.2f %s", figure, unit), figure <= limit)
      end
    end
  end
end
