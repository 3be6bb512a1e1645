# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/recorded_program"
require_relative "../support/own_walk"

# Where looks at short calls find the time.
class WalkTimingTest < Minitest::Test
  include RecordedProgram

  # As WalkTest has it.
  KNOWN = OwnWalk.used?

  def settings = { interval_ns: 200_000 }

  def captures_by_frame(segment)
    segment.tallies.each_with_object(Hash.new(0)) do |tally, found|
      tally.enum_for(:each).each { |node, _, _, captures| found[segment.frame(node)] += captures unless node.zero? }
    end
  end

  # Which C function was on top is told by the site of the call where that comes too late; by the frame itself where it stays.
  def test_short_calls_of_c_have_their_time_in_each_mode
    return pass unless KNOWN
    run_program(<<~'RUBY')
      class Work
        def rest(x) = (j = 0; (x = (x * 31 + j) & 0xffff; j += 1) while j < 12; x)
        def loop(n) = (i = 0; x = 0; s = "Hello World " * 10; (x = rest(x); s.downcase; i += 1) while i < n)
      end
      work = Work.new
      3.times do |round|
        %w[signal outside].each do |mode|
          record("#{mode}#{round}.pit", mode: mode, interval_ns: 100_000) { limit = cpu + 0.5; work.loop(2000) while cpu < limit }
        end
        record("fiber#{round}.pit", mode: "outside", interval_ns: 100_000) { limit = cpu + 0.5; Fiber.new { work.loop(2000) while cpu < limit }.resume }
      end
      abort "no sites" unless Pitwall::Native.site_self_test
    RUBY
    # The middle of three: while the host takes a core away, most looks come too late.
    signal, *others = %w[signal outside fiber].map do |name|
      shares = Array.new(3) do |round|
        own = captures_by_frame(segment("#{name}#{round}.pit")).each_with_object(Hash.new(0)) { |(frame, captures), sums| sums[frame.name] += captures }
        own["Work#loop"].fdiv(own["Work#loop"] + own["String#downcase"])
      end
      shares.sort[1]
    end
    others.each { |share| assert_in_delta signal, share, 0.3 } # where looks that came too late were the caller's: 0.35 to 0.7 by signals' 0.25
  end
end
