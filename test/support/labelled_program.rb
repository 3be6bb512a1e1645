# frozen_string_literal: true

require_relative "recorded_program"
require "pitwall/analyse"

# Programs that set labels.
module LabelledProgram
  include RecordedProgram

  # Sums of ns by labels, for rows that have labels. Wall time includes time in which other programs had the core.
  def times(segments = segment, weight: :wall)
    Array(segments).each_with_object(Hash.new(0)) do |segment, sums|
      segment.tallies.each do |tally|
        tally.each do |_, wall, cpu,|
          sums[segment.labels(tally.label_id)] += (weight == :cpu ? cpu : wall) * segment.unit_ns
        end
      end
    end
  end

  PARTS = <<~RUBY
    record do
      Pitwall.label(route: "a") { burn(0.2) }
      burn(0.1)
      Pitwall.label(route: "b", tenant: 7) do
        burn(0.1)
        Pitwall.label(route: "c", tenant: nil) { sleep 0.1 }
        burn(0.1)
      end
    end
  RUBY
end
