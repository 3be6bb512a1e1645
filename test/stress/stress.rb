# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/recorded_program"

# Loads under which a sampler finds Ruby in every state it can be in, in each mode and at 1 and 10 kHz.
#
# Each load runs for PITWALL_STRESS_SECONDS: 0.3 by default, as in `script/test`. `rake test:stress` and CI set it higher.
module Stress
  include RecordedProgram

  SECONDS = Float(ENV.fetch("PITWALL_STRESS_SECONDS", "0.3"))
  # Every way of sampling; one more is put under all loads by its name here.
  MODES = %w[outside signal safepoint].freeze
  CASES = MODES.product([1_000_000, 100_000]).freeze
  PATIENCE = 120 + SECONDS * 20

  # Defines a test of a load for each case. The block's value is the load: Ruby code that runs again and again within
  # `record` until the time is over; `before` comes once, ahead of it.
  module Loads
    # {name => {before:, source:}}, for those who mix loads.
    def loads = @loads ||= {}

    def load_test(name, before: "", options: [], &block)
      loads[name] = { before: before, source: block.call }
      CASES.each do |mode, interval_ns|
        define_method(:"test_#{name}_#{mode}_at_#{1_000_000_000 / interval_ns}_Hz") do
          @settings = { mode: mode, interval_ns: interval_ns }
          weather("#{before}\nSECONDS = #{SECONDS}\nrecord {\nLIMIT = now + SECONDS\nbegin\n#{instance_exec(&block)}\nend until now > LIMIT }\nputs :end\n", options)
        end
      end
    end
  end

  def self.included(test_class) = test_class.extend(Loads)

  def settings = @settings

  def weather(source, options)
    result = attempt(source, options: ["-W0", *options], patience: PATIENCE)
    assert result.status.success?, "#{settings}: #{result.status}\n#{result.out}\n#{result.err[0, 6000]}"
    assert_equal "end", result.out.lines.last&.chomp
    recording = read
    assert_empty recording.warnings
    recording.segments.each { |part| assert_sane(part) }
    assert_captured(recording.segments)
    recording
  end

  # How many stacks are dropped depends on the machine: test/timing/losses_test.rb.
  def assert_captured(segments)
    captures, refused = %w[captures refused_frames].map { |name| segments.sum { |part| part.stat(name) } }
    assert_operator captures, :>, 0
    assert_operator refused, :<=, 20 + captures / 10, "refused of #{captures}"
  end
end
