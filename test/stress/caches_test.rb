# frozen_string_literal: true

require_relative "stress"
require_relative "../support/own_walk"

# Classes that change in eight threads, while recordings start and stop and processes are forked.
class CachesStressTest < Minitest::Test
  include RecordedProgram

  STORM = <<~RUBY
    SECONDS = #{Stress::SECONDS}
    module Mixed; end
    stop = false
    threads = Array.new(8) do |t|
      Thread.new do
        n = 0
        until stop
          n += 1
          made = Class.new { include Mixed }
          made.define_method(:"m\#{n % 50}") { n }
          made.const_set(:AT, n)
          object = made.new.extend(Comparable)
          object.instance_variable_set(:"@v\#{n % 50}", n)
          made.class_eval("@@seen = 1; def evaluated = 1")
          abort "wrong" unless object.evaluated == 1 && made::AT == n
          (made.define_method(nil) {} rescue nil)
          GC.start if n % 200 == 0
          Thread.new { Object.new.singleton_class }.join if n % 50 == 0
        end
      end
    end
    limit = now + SECONDS
    turns = 0
    until now > limit && turns > 3
      start("a.pit", mode: "none", collectors: { "caches" => { "lines" => ["0", "1", "quiet"][turns % 3] } })
      sleep 0.02
      Process.wait(fork { Class.new.define_method(:child) { 1 }; exit!(0) }) if turns % 4 == 0
      abort "child" unless turns % 4 > 0 || $?.success?
      stop()
      turns += 1
    end
    stop = true
    threads.each(&:join)
    puts :end
  RUBY
  private_constant :STORM

  def settings = { mode: "none" }

  def test_changes_while_recordings_come_and_go
    skip "needs a known layout" unless OwnWalk.used?
    result = attempt(STORM, options: ["-W0"], patience: Stress::PATIENCE)
    assert_equal [true, "end\n"], [result.status.success?, result.out], result.err[0, 4000]
    assert_empty read.warnings
    assert_operator segment.cache_changes.size, :>, 0
  end
end
