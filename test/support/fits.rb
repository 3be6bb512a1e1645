# frozen_string_literal: true

require "pitwall/show"

# What every terminal view keeps to.
module Fits
  # No line is wider, none has control characters or ends in blanks; without Unicode only names may have any.
  def assert_fits(view, width, unicode: true)
    view.each_line(chomp: true) do |line|
      assert_operator Pitwall::Show::Text.width(line), :<=, width, line
      refute_match(/\e|\s\z/, line)
    end
    assert_predicate view.gsub(/[日本語]/, ""), :ascii_only? unless unicode
  end
end
