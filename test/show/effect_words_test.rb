# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/analyse"
require "pitwall/show"

class EffectWordsTest < Minitest::Test
  # A level never reads as certainty.
  def test_levels
    levels = { 0.95 => "95%", 0.99 => "99%", 0.99923 => "99.9%", 0.99992 => "99.99%", 0.99999 => "99.99%" }
    levels.each do |level, text|
      estimate = Pitwall::Analyse::Estimate.new(1.0, 0.9, 1.1, level, 8)
      assert_equal text, Pitwall::Show::EffectWords.level(estimate)
    end
    assert_equal "", Pitwall::Show::EffectWords.level(nil)
  end
end
