# frozen_string_literal: true

require_relative "recorded_program"
require "pitwall/analyse"

# Programs that label what they do.
module LabelledProgram
  include RecordedProgram

  # Sums of wall ns by labels, of rows that have any.
  def times(segments = segment)
    Array(segments).each_with_object(Hash.new(0)) do |segment, sums|
      segment.tallies.each { |tally| tally.each { |_, wall,| sums[segment.labels(tally.label_id)] += wall * segment.unit_ns } }
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
