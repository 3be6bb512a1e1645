# frozen_string_literal: true

require_relative "recorded_program"
require "pitwall/analyse"

# Programs that label what they do.
module LabelledProgram
  include RecordedProgram

  # Sums of ns by labels, of rows that have any. Wall time is also the time of whoever else had the core.
  def times(segments = segment, weight: :wall)
    Array(segments).each_with_object(Hash.new(0)) do |segment, sums|
      segment.tallies.each { |tally| tally.each { |_, wall, cpu,| sums[segment.labels(tally.label_id)] += (weight == :cpu ? cpu : wall) * segment.unit_ns } }
    end
  end

  PARTS = <<~RUBY
    record do
      Pitwall.label(route: "a") { burn(0.2) }
      burn(0.1)
      Pitwall.label(route: "b", tenant: 7) { burn(0.1); Pitwall.label(route: "c", tenant: nil) { sleep 0.1 }; burn(0.1) }
    end
  RUBY
end
