# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/c_layers"

# The extension's layers: #include and calls go down only, and no two files know each other.
class LayersTest < Minitest::Test
  EXT = File.join(Checkout::ROOT, "ext/pitwall")
  LONGEST = 500 # lines of a file

  def self.read
    @read ||= CLayers.read(EXT, Checkout::BUILD)
  end

  def layers
    self.class.read
  rescue Errno::ENOENT => e
    skip "peer absent: nm (#{e.message})"
  end

  def test_nothing_knows_what_is_above_it
    assert_empty layers.arrows_up.map(&:to_s)
  end

  def test_there_are_no_circles
    assert_empty layers.circles
  end

  def test_every_file_is_in_a_layer
    assert_empty layers.strangers
    assert_empty layers.problems
    assert_operator layers.units.size, :>, 50
    assert_operator layers.arrows.size, :>, 200
  end

  def test_no_file_is_long
    lines = Dir["#{EXT}/**/*.{c,h,rb}"].to_h { |file| [file.delete_prefix("#{EXT}/"), File.foreach(file).count] }
    long = lines.select { |_, count| count > LONGEST }
    assert_empty long
  end

  # The build compiles what lies in the folders, each file once.
  def test_object_files_have_names_of_their_own
    names = Dir["#{EXT}/**/*.c"].map { |file| File.basename(file) }
    assert_equal names.uniq, names
  end

  # A function that may run in a handler, needs the GVL or a lock says so by a tag. pitwall.c explains the tags.
  def test_tags_are_spelled_as_pitwall_c_has_them
    tags = File.read("#{EXT}/pitwall.c").scan(/^ \*   ((?:async|needs|holds)[\w -]*?)   /).flatten
    assert_equal ["async-signal-safe", "needs GVL", "holds session lock", "holds reader lock", "holds list lock"], tags
    used = Dir["#{EXT}/**/*.{c,h}"].flat_map do |file|
      found = File.read(file).scan(/async.signal.safe|needs (?:the )?GVL|holds (?:the )?\w+(?:'s)? lock/i)
      found.map { |tag| [tag, file.delete_prefix("#{EXT}/")] }
    end
    prose = [["needs the GVL", "session/threads.h"]]
    assert_empty used.reject { |tag, _| tags.include?(tag) } - prose
    assert_operator used.size, :>, 100
  end

  # ---- the test itself ----

  SOUND = { "tools/clock.h" => "", "vm/walk.c" => "#include \"tools/clock.h\"\n#include <errno.h>\n",
            "collectors/trace/tracer.c" => "", "pitwall.c" => "" }.freeze

  def test_a_sound_tree_is_sound
    symbols = { "vm/walk" => [%w[pw_tick malloc], %w[pw_walk]], "tools/clock" => [[], %w[pw_tick]] }
    assert_empty CLayers.new(SOUND, symbols).problems
  end

  def test_an_include_that_goes_up_is_found
    sources = SOUND.merge("tools/clock.h" => "#include \"vm/walk.h\"\n", "vm/walk.h" => "", "vm/walk.c" => "")
    assert_equal ["tools/clock -> vm/walk (includes vm/walk.h)"], CLayers.new(sources, {}).problems
  end

  def test_a_call_that_goes_up_is_found
    symbols = { "vm/walk" => [%w[pw_trace_stop], %w[pw_walk]], "collectors/trace/tracer" => [[], %w[pw_trace_stop]] }
    assert_equal ["vm/walk -> collectors/trace/tracer (needs pw_trace_stop)"], CLayers.new(SOUND, symbols).problems
  end

  def test_a_collector_that_knows_another_is_found
    tracer = "collectors/trace/tracer.h"
    sources = SOUND.merge("collectors/syscalls/rows.c" => "#include \"#{tracer}\"\n", tracer => "")
    problem = "collectors/syscalls/rows -> collectors/trace/tracer (includes #{tracer})"
    assert_equal [problem], CLayers.new(sources, {}).problems
  end

  def test_a_circle_within_a_layer_is_found
    sources = SOUND.merge("vm/peek.c" => "#include \"vm/walk.h\"\n", "vm/walk.h" => "")
    symbols = { "vm/walk" => [%w[pw_peek], []], "vm/peek" => [[], %w[pw_peek]] }
    assert_equal ["circle: vm/peek, vm/walk"], CLayers.new(sources, symbols).problems
  end

  def test_a_file_in_no_layer_and_an_include_without_a_folder_are_found
    sources = SOUND.merge("nowhere/unwind.c" => "", "vm/walk.c" => "#include \"clock.h\"\n")
    problems = ["vm/walk.c includes clock.h, which is no path below ext/pitwall", "nowhere/unwind is in no layer"]
    assert_equal problems, CLayers.new(sources, {}).problems
  end
end
