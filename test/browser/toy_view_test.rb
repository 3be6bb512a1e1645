# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/browser"
require_relative "../support/shop_recording"
require_relative "../support/toy_view"
require "pitwall/cli"
require "stringio"

# A view of one file has a tab on the page: its name, its place and its table come from the list of views.
class ToyViewPageTest < Minitest::Test
  include Browser

  def page
    File.binwrite(file("shop.pit"), ShopRecording.bytes)
    err = StringIO.new
    arguments = ["report", file("shop.pit"), "--format", "html", "--out", file("shop.html")]
    assert_equal 0, Pitwall::CLI.run(arguments, out: StringIO.new, err: err), err.string
    file("shop.html")
  end

  def test_its_tab_is_a_table
    seen = ToyView.added { in_browser("page.mjs", "recording", page) }
    assert_empty seen["complaints"]
    assert_empty seen["nameless"]
    assert_equal ["Flame graph", "Call tree", "Methods", "Source", "Threads", "Toy", "About"], seen["tabs"]
    toy = seen.dig("views", "Toy")
    assert_includes toy["hash"], "view=toy"
    assert_match(%r{methods.*file.*2.*/srv/app/app/models/shop/checkout/cart\.rb}m, toy["text"])
  end

  def test_without_it_there_is_no_tab
    seen = in_browser("page.mjs", "recording", page)
    assert_equal ["Flame graph", "Call tree", "Methods", "Source", "Threads", "About"], seen["tabs"]
  end
end
