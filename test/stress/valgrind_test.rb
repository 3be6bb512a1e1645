# frozen_string_literal: true

require_relative "stress"

# Runs under `rake test:valgrind`. Ruby's own conservative scanning looks like errors to valgrind, so only what has the
# extension on the stack counts, and not what is the garbage collector's doing even there.
class ValgrindTest < Minitest::Test
  include RecordedProgram

  GC_FRAMES = /\b(gc_mark\w*|rb_gc_mark\w*|mark_\w*|each_location\w*|gc_sweep\w*|newobj\w*)\b/

  VALGRIND = %w[valgrind --quiet --num-callers=40 --error-limit=no --undef-value-errors=yes --max-stackframe=8382448 --trace-children=no].freeze

  asked_for = ENV["PITWALL_VALGRIND"] # minutes long: no part of an ordinary run

  define_method(:test_a_recording) do
    Stress::MODES.each do |mode|
      result = attempt(<<~RUBY, wrapper: VALGRIND + ["--log-file=#{file("valgrind.log")}"], options: ["-W0"], patience: 600)
        record(mode: #{mode.dump}, interval_ns: 1_000_000, flush_ns: 50_000_000) do
          burn(0.5)
          5.times { Thread.new { Array.new(500) { |i| i.to_s } }.join }
          GC.start
          30.times { |i| eval("def v\#{i} = [1].map { |x| x }; v\#{i}") }
        end
        record("b.pit", mode: #{mode.dump}) { burn(0.1) }
        puts :end
      RUBY
      assert_equal [true, "end\n"], [result.status.success?, result.out], result.err[0, 4000]
      assert_sane(segment)
      assert_empty errors_of_ours(File.read(file("valgrind.log"))), mode
    end
  end if asked_for

  # The collectors, under threads that come and go: every call, every object, labels.
  define_method(:test_collectors) do
    { "trace" => "{}", "allocations" => '{ "stacks" => "1" }' }.each do |collector, options|
      result = attempt(<<~RUBY, wrapper: VALGRIND + ["--log-file=#{file("valgrind.log")}"], options: ["-W0"], patience: 600)
        def some(n) = Array.new(n) { |i| i.to_s }.map(&:size).sum
        record(mode: "outside", interval_ns: 10_000_000, flush_ns: 50_000_000, collectors: { #{collector.dump} => #{options} }) do
          3.times { |n| Pitwall.label(turn: n) { Array.new(3) { Thread.new { Pitwall.request(route: "r") { some(200) } } }.each(&:join) } }
          Fiber.new { some(100); Fiber.yield }.resume
          some(10) rescue nil
          GC.start
        end
        puts :end
      RUBY
      assert_equal [true, "end\n"], [result.status.success?, result.out], result.err[0, 4000]
      assert_sane(segment)
      assert_empty errors_of_ours(File.read(file("valgrind.log"))), collector
    end
  end if asked_for

  # Reports whose stack passes through pitwall.so below no frame of the collector's marking.
  def errors_of_ours(log)
    log.scrub.gsub(/^==\d+== ?/, "").split(/\n\s*\n/).select { |report| report.include?("pitwall.so") && !report.match?(GC_FRAMES) }
  end
end
