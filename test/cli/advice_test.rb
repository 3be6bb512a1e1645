# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/errors"
require "pitwall/cli/support/advice"

# Errors of the layers below name no option: they carry a key, and the command has the words.
class AdviceTest < Minitest::Test
  ADVICE = Pitwall::CLI::ADVICE

  def keys_in_use
    files = Dir[File.join(Checkout::ROOT, "lib/pitwall/**/*.rb")] - [File.join(Checkout::ROOT, "lib/pitwall/errors.rb")]
    files.flat_map { |file| File.read(file).scan(/\badvice(?:: | = )([^\n]*\{[^\n]*\})/).flatten }
         .flat_map { |hash| hash.scan(/(\w+): /).flatten }.map(&:to_sym).uniq
  end

  def test_every_key_has_words_and_is_used
    assert_equal ADVICE.keys.sort, keys_in_use.sort
  end

  def test_words_follow_the_message
    assert_equal "x.pit: damaged; try --salvage to read the rest",
                 Pitwall::CLI.message(Pitwall::BadRecording.new("x.pit: damaged", advice: { salvage: nil }))
    error = Pitwall::UsageError.new("it failed", advice: { without_bundle: "Gemfile", failure: nil })
    assert_equal "it failed; --no-bundle runs it without Gemfile; --ignore-failure measures it all the same",
                 Pitwall::CLI.message(error)
    assert_equal "it takes 9 s; --budget 60 holds them, --pairs N takes fewer (for counts)",
                 Pitwall::CLI.message(Pitwall::CannotMeasure.new("it takes 9 s", advice: { budget: 60 }))
    assert_equal "it failed", Pitwall::CLI.message(Pitwall::UsageError.new("it failed"))
    assert_equal "Pitwall::UsageError", Pitwall::UsageError.new.message
  end
end
