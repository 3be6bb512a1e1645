# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/recording_builder"
require_relative "../support/random_recording"
require "pitwall/analyse"

# How long threads waited, by method.
class WaitingTimeTest < Minitest::Test
  MAIN = ["<main>", "/app/a.rb", 1, 3].freeze
  READ = ["IO#read", "", 0, 0, 1].freeze
  NATIVE = [["rb_io_read", "/lib/libruby.so", 0, 0, 3], ["read", "/lib/libc.so.6", 0, 0, 3]].freeze

  def waiting
    bytes = RecordingBuilder.build(unit_ns: 1) do |segment|
      segment.row(stack: [MAIN], wall: 7, cpu: 7)
      yield segment
    end
    Pitwall::Analyse::WaitingTime.new(RandomRecording.read(bytes).segments)
  end

  # "libruby.so+0x211130" would not say what was waited for.
  def test_native_frames_wait_for_the_method_that_called_them
    found = waiting do |segment|
      segment.row(stack: [MAIN, READ], wall: 100, cpu: 0, state: 2)
      segment.row(stack: [MAIN, READ, *NATIVE], wall: 50, cpu: 0, state: 2)
      segment.row(stack: [MAIN, *NATIVE], wall: 20, cpu: 0, state: 2)
      segment.row(stack: [MAIN, READ, *NATIVE], wall: 5, cpu: 0, state: 1)
    end
    assert_equal [["IO#read", 150], ["<main>", 20], ["the GVL", 5]], found.rows
    assert_equal [175, 182], [found.total, found.all]
    assert_equal [100, 70, 0], [found.in("IO#read"), found.in("read"), found.in("<main>")]
  end

  def test_a_thread_without_ruby
    found = waiting { |segment| segment.row(stack: NATIVE, wall: 9, cpu: 0, state: 2) }
    assert_equal [["read", 9]], found.rows
  end
end
