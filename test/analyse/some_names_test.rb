# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/analyse"

class SomeNamesTest < Minitest::Test
  def test_names_and_how_many_more
    names = %w[a b c d]
    texts = (1..5).map { |most| Pitwall::Analyse::SomeNames.of(names, most) }
    assert_equal ["a and 3 more", "a, b and 2 more", "a, b, c and 1 more", "a, b, c, d", "a, b, c, d"], texts
    assert_equal "", Pitwall::Analyse::SomeNames.of([], 2)
  end
end
