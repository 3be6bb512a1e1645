# frozen_string_literal: true

require_relative "../stress/stress"

# Stacks are dropped where the ring is full before they are written. On a machine with time for that there are few.
class LossesTimingTest < Minitest::Test
  include Stress

  MIXED = "load #{File.join(Checkout::ROOT, "benchmarks/programs/mixed.rb").dump}"

  load_test(:mixed, before: "#{MIXED}\nMIXED = Programs::Mixed.new") { "MIXED.pass" }

  load_test(:fibers) { "50.times { f = Fiber.new { 10.times { Fiber.yield [1, 2, 3].map(&:to_s) } }; 10.times { f.resume } }" }

  load_test(:short_threads) { "[20, 5].each { |n| Array.new(n) { Thread.new { (1..200).sum { |x| x.to_s.size } } }.each(&:join) }" }

  def weather(source, options)
    segments = super.segments
    captures, dropped = %w[captures dropped].map { |name| segments.sum { |part| part.stat(name) } }
    assert_operator dropped, :<=, 10 + captures * 0.2, "dropped of #{captures}"
  end
end
