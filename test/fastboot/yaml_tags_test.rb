# frozen_string_literal: true

require_relative "../test_helper"
require "pitwall/fastboot/yaml_tags"
require "psych"

# What YamlTags says of a text, beside the tags of psych's nodes.
class FastbootYamlTagsTest < Minitest::Test
  HARMLESS = ["!", "tag:yaml.org,2002:str"].freeze
  # With "!" in all places: in text, before values, after other tokens.
  PIECES = [
    "!", "!", "!", "!a", "!!str ", "! ", "! ", "! ", "a", "é", "b c", "1", " ", " ", "\n", "\n  ", "- ", ": ", "a: ",
    "? ", ", ", "[", "]", "{", "}", "'", "\"", "&x ", "*x ", "\"x\"", "'x'", "(", "(!", "#", " # ", "|\n", ">\n",
    "---", "---\n", "...\n", "%TAG !e! a\n", "\t", "\u0085", "\u2028", "\uFEFF", "%", "@", "`", "\\", "e\u0301", "日本"
  ].freeze
  TEXTS = 10_000

  def any?(text) = Pitwall::Fastboot::YamlTags.new(Psych, HARMLESS).any?(text.b)

  # The slow way. nil: psych can't read the text.
  def tagged?(text)
    Psych.parse_stream(text.delete_prefix("\uFEFF")).any? do |node|
      node.tag && !(node.is_a?(Psych::Nodes::Scalar) && HARMLESS.include?(node.tag))
    end
  rescue Psych::SyntaxError
    nil
  end

  def test_finds_the_tags_that_psych_finds
    random = Random.new(18)
    texts = Array.new(TEXTS) { Array.new(random.rand(2..9)) { PIECES.sample(random: random) }.join }.uniq
    known = texts.to_h { |text| [text, tagged?(text)] }.compact
    assert_empty(known.reject { |text, tagged| any?(text) == tagged })
    assert_operator known.values.count(true), :>, 100
    assert_operator known.count { |text, tagged| text.include?("!") && !tagged }, :>, 100
  end

  def test_text_is_not_parsed_where_no_tag_can_be
    parser = Class.new { def self.new(*) = raise("parsed") }
    psych = Module.new { const_set(:Parser, parser) }
    psych.const_set(:Handler, Class.new)
    psych.const_set(:SyntaxError, Class.new(StandardError))
    tags = Pitwall::Fastboot::YamlTags.new(psych, HARMLESS)
    assert_equal [false, false], [tags.any?("a: b"), tags.any?("a: Hello!\nb: \"Voilà !\"\nc: ! 'x'\n")]
    assert_raises(RuntimeError) { tags.any?("a: Voilà !\n") }
  end

  def test_does_not_know_tags_of_other_encodings_and_of_damaged_text
    assert_nil any?("a: b !\n".encode("UTF-16LE"))
    assert_nil any?("a: \xFF !\n")
    assert_nil any?("a: !b\nc: [\n")
  end
end
