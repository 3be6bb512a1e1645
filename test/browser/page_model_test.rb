# frozen_string_literal: true

require "open3"
require_relative "../test_helper"

# What the page works out, without a browser: its modules in Node.js.
class PageModelTest < Minitest::Test
  def test_a_range_cuts_rows_as_the_slow_way_does
    node = system("node --version", out: File::NULL, err: File::NULL)
    skip "peer absent: Node.js (apt-get install nodejs)" unless node
    out, status = Open3.capture2e("node", File.join(__dir__, "rows.mjs"), "4000")
    assert status.success?, out[0, 2000]
    assert_equal "same\n", out
  end
end
