# frozen_string_literal: true

module Pitwall
  module History
    module Sources
      # Results of ruby-bench (once yjit-bench): `output_NNN.json` of run_benchmarks.rb with all benchmarks of all
      # Rubies, or the file of one benchmark, which its harness writes. Times are seconds of each iteration.
      module RubyBench
        # Their name → Pitwall's, unit.
        MEMORY = { "rss" => %w[rss bytes], "maxrss" => %w[max_rss bytes] }.freeze
        private_constant :MEMORY

        class << self
          #: (untyped) -> bool
          def of?(object)
            return false unless object.is_a?(Hash)
            return true if measured?(object)

            object["raw_data"].is_a?(Hash) && object["raw_data"].any? && object["raw_data"].values.all?(Hash)
          end

          #: (String, String, untyped, Facts) -> Array[Run]
          def runs(path, text, object, facts)
            if measured?(object)
              name = File.basename(path, ".json")
              return [run(text, facts, "", object["RUBY_DESCRIPTION"], { name => object })]
            end

            object["raw_data"].map do |label, benchmarks|
              ruby = object["metadata"].is_a?(Hash) ? object["metadata"][label] : nil
              run(text, facts, label, ruby || label, benchmarks)
            end
          end

          private

          def measured?(object) = object.is_a?(Hash) && object["bench"].is_a?(Array)

          def run(text, facts, label, ruby, benchmarks)
            facts = facts.dup
            facts.ruby = ruby.to_s unless ruby.nil?
            run = Sources.run(text, facts, side: label, tool: "ruby-bench")
            measured = benchmarks.select { |_, found| measured?(found) }
            run.figures = measured.flat_map { |name, found| figures(facts, name, label, found) }
            run
          end

          # A warmed-up iteration.
          def figures(facts, name, label, found)
            times = found["bench"].grep(Numeric)
            memory = MEMORY.filter_map do |theirs, (metric, unit)|
              figure(facts, name, label, metric, unit, found[theirs]) if found[theirs].is_a?(Numeric)
            end
            return memory if times.empty?

            [figure(facts, name, label, "wall", "ns", Analyse::Statistics.median(times) * 1e9), *memory]
          end

          def figure(facts, name, label, metric, unit, value)
            Sources.figure(facts, benchmark: name, metric: metric, unit: unit, value: value.to_f).tap do |figure|
              figure.variant = label
            end
          end
        end
      end
    end
  end
end
