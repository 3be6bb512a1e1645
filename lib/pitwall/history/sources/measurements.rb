# frozen_string_literal: true

module Pitwall
  module History
    module Sources
      # What `bench` and `compare` wrote: one run for each side.
      module Measurements
        # Facts of a side that set it apart from the same benchmark with another revision.
        APART = %w[code env gems patches stub flags].freeze
        private_constant :APART

        class << self
          #: (String, Facts) -> Array[Run]
          def runs(path, facts)
            contents = Record::Measurements.read(path)
            check(path, contents)
            content = File.binread(path)
            known = sides(contents.head)
            contents.samples.group_by(&:side).map do |side, samples|
              run(content, contents, facts, samples, side, known.fetch(side, {}))
            end
          end

          private

          # A file that still grows would be another run at its end.
          def check(path, contents)
            raise Unfit, "#{path}: its measurement has not ended, or was killed" unless contents.ended?
            raise Unfit, "#{path}: only confirms another file, for a gate" if contents.head.key?("confirms")

            Sources.refuse_ranges(path, contents.tail)
          end

          # Side → its facts. A file of `bench` has one side without a name.
          def sides(head)
            return { "" => head["facts"].to_h } unless head["kind"] == "compare"

            Array(head["sides"]).grep(Hash).to_h { |side| [side["name"].to_s, side["facts"].to_h] }
          end

          def run(content, contents, facts, samples, side, of_side)
            facts = facts.dup
            facts.host ||= contents.head["host"].to_h
            facts.ruby = of_side["ruby"]&.to_s || facts.ruby
            facts.commit = of_side["revision"].to_s if of_side["revision"]
            names = contents.cases.map(&:name)
            summaries = Analyse::BenchSummary.of(samples, names: names.empty? ? nil : names)
            figures = summaries.flat_map { |summary| figures(summary, facts) } + counts(contents, facts, side)
            variant = variant(of_side)
            figures.each { |figure| figure.variant = variant }
            run = Sources.run(content, facts, side: side, tool: "pitwall #{contents.head["kind"]}",
                                              command: contents.head["command"]&.to_s)
            run.figures = figures.uniq(&:series_id)
            run
          end

          def variant(of_side)
            found = of_side.slice(*APART).map { |name, text| "#{name} #{text}" }
            found << "uncommitted changes" if of_side["changes"]
            found.join(", ")
          end

          def figures(summary, facts)
            summary[:values].each_value.filter_map do |value|
              estimate = value.estimate
              next if estimate&.point.nil?

              Sources.figure(facts, benchmark: summary.name, metric: value.metric, unit: value.unit,
                                    value: estimate.point.to_f, low: estimate.low&.to_f, high: estimate.high&.to_f,
                                    processes: summary.processes)
            end
          end

          # Counts by runs of their own.
          def counts(contents, facts, side)
            contents.counts.filter_map do |counts|
              values = counts.sides[side].to_a.compact
              next if values.empty?

              Sources.figure(facts, benchmark: counts.name, metric: counts.metric,
                                    unit: Record::METRICS.fetch(counts.metric).unit,
                                    value: Analyse::Statistics.median(values), processes: values.size)
            end
          end
        end
      end
    end
  end
end
