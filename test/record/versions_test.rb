# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/record"
require "pitwall/analyse"

# Pitwall reads every version of the format. For each version there is one recording, written by the extension of that
# version.
class VersionsTest < Minitest::Test
  FOLDER = File.expand_path("../fixtures/recordings", __dir__)

  # The recording is of Ruby 3.4. It has two processes (a fork), a sleeping thread and garbage collections.
  def test_version_1
    recording = Pitwall::Record.read(File.join(FOLDER, "v1.pit"))
    assert_empty recording.warnings
    assert_equal [1692, 1696], recording.segments.map { |segment| segment.header.pid }
    main, child = recording.segments
    assert_equal %w[main reaper], main.threads.values.map(&:name)
    assert_equal "3.4.11", main.header.ruby["version"]
    assert main.header.thread_states?
    assert_equal({ "reason" => "stop" }, child.tail)

    tree = Pitwall::Analyse::CallTreeBuilder.build(recording.segments)
    names = tree.methods.map(&:name)
    expected = ["Cart.price", "Cart#total", "block in Cart.price", "Kernel#sleep", "Process.wait",
                "(marking)", "(sweeping)"]
    expected.each { |name| assert_includes names, name }
    assert_equal 113, recording.segments.sum { |segment| segment.stat("captures") }
    assert_in_delta 83.0, tree.total(:cpu) / 1e6, 10
  end
end
