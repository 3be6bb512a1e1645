# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/measured"
require "cgi/escape"
require "json"
require "strscan"
require "pitwall/record/proof"
require "pitwall/show"
require "pitwall/views/hints"

# A comparison as trailers, JSON, Markdown and JUnit, and the trailers read again.
class ProofViewsTest < Minitest::Test
  include Measured

  TREES = %w[a b].map { |digit| digit * 40 }.freeze
  REPEAT = { "folder" => "", "trees" => TREES, "listing" => "", "benchmark" => { "path" => "x.rb", "blob" => "c" * 40 },
             "command" => "pitwall compare --rev #{TREES.first} --rev #{TREES.last} x.rb" }.freeze
  # Names that look like parts of a trailer.
  NAMES = ["500 rows", "a: wall 1 → 2, 3 pairs, faster", "GET /orders/:id", "naïve, exact", "x\ny\t|<&>\"'",
           "(99%)"].freeze

  # Trailers are read as they were written: names, verdicts and pairs exactly, ratios as the text rounds them.
  def test_trailers_are_read_as_written
    random = Random.new(5)
    100.times do
      effects = Array.new(random.rand(1..3)) { |at| invented(random, "#{NAMES.sample(random: random)}#{at}") }
      effects += effects.map { |effect| counted(random, effect.name) }
      proof = read(effects)
      written = Pitwall::Show::ProofTrailers.claimed(comparison(effects))
      assert_equal effects.map(&:name).uniq.size, written.map(&:name).uniq.size
      written.zip(proof.claims) { |effect, claim| assert_same_effect(effect, claim) }
    end
  end

  def test_the_rest_of_a_proof
    proof = read([slower])
    assert_equal [*TREES, %w[x.rb cccccccccccccccccccccccccccccccccccccccc], REPEAT["command"]],
                 [proof.base, proof.tree, proof.benchmark, proof.command]
    assert_match(/\Aruby 3\.4.*; 2 cores, AMD EPYC 7763, kernel 6\.1\.0-18-amd64, 8\.00 GiB; pitwall 9\.9\z/,
                 proof.environment)
    assert_nil Pitwall::Record::Proof.read(["Signed-off-by: a <a@example.org>"])
  end

  # Of counts only those of the code that changed; the headline in any case.
  def test_what_is_claimed
    effects = [effect(:undecided, [1.001, 0.99, 1.02]), exact(:fewer, 10, 5), exact(:same, 3, 3, metric: "bytes"),
               effect(:more, [1.5, 1.4, 1.6], metric: "minor_faults")]
    assert_equal %w[wall objects], Pitwall::Show::ProofTrailers.claimed(comparison(effects)).map(&:metric)
  end

  def test_damaged_proofs_are_refused
    whole = trailers([slower])
    { /\APitwall-Effect/ => "no Pitwall-Effect", /\APitwall-Trees/ => "no Pitwall-Trees",
      /\APitwall-Command/ => "no Pitwall-Command" }.each do |line, message|
      assert_refused message, whole.grep_v(line)
    end
    wrong = ["Pitwall-Trees: main HEAD", "Pitwall-Effect: quick", "Pitwall-Effect: x: wall 1 → 2, 3 pairs, better"]
    wrong.each do |line|
      assert_refused line.split(":").first, [*whole, line]
    end
  end

  def test_junit
    name = "a <b> & \"c\" \e \u{ffff}"
    effects = [slower, effect(:faster, [0.9, 0.88, 0.92], name: name), exact(:more, 1, 2, name: name),
               effect(:undecided, [1.0, 0.9, 1.1], name: "three")]
    text = Pitwall::Show::ProofJunit.new(comparison(effects), REPEAT, version: "9.9").to_s
    suite = elements(text).first.children.first
    assert_equal %w[4 2 0 1], suite.attributes.values_at("tests", "failures", "errors", "skipped")
    tests = suite.children.drop(1)
    assert_equal %w[failure system-out failure skipped], tests.map { |test| test.children.first.name }
    assert_equal "a <b> & \"c\" \\e ?: wall time", tests[1].attributes["name"]
    properties = suite.children.first.children.to_h { |row| row.attributes.values_at("name", "value") }
    assert_equal [*TREES, REPEAT["command"]], properties.values_at("base.tree", "side.tree", "command")
  end

  def test_json_and_markdown
    report = comparison([slower, exact(:fewer, 10, 5)])
    json = JSON.parse(Pitwall::Show::ProofJson.new(report, REPEAT, version: "9.9").to_s)
    proof = json["proof"]
    assert_equal ["pitwall/prove-1", *TREES, "9.9"], [json["schema"], *proof.values_at("base", "tree", "pitwall")]
    assert_equal %w[slower fewer], json["results"].map { |row| row["verdict"] }
    markdown = Pitwall::Show::ProofMarkdown.new(report, REPEAT, version: "9.9", hints: Pitwall::Views::Hints).to_s
    ["**dirty is slower than main**", "- trees: `aaaaaaaaaaaa` (main) → `bbbbbbbbbbbb` (dirty)",
     "- benchmark: `x.rb`, content `cccccccccccc`", "```sh\n#{REPEAT["command"]}\n```"].each do |part|
      assert_includes markdown, part
    end
    bare = Pitwall::Show::ProofMarkdown.new(report, nil, version: nil, hints: Pitwall::Views::Hints).to_s
    refute_includes bare, "- trees"
  end

  private

  Element = Struct.new(:name, :attributes, :children)
  TAG = %r{<(?<end>/?)(?<name>[\w-]+)(?<attributes>(?: [\w.-]+="[^"<>]*")*)(?<empty>/?)>}.freeze
  private_constant :Element, :TAG

  # The elements of a well-formed file: all tags are closed in order, and nothing unescaped stands between them.
  def elements(text)
    scanner = StringScanner.new(text.sub(/\A<\?xml [^?]*\?>/, ""))
    open = [Element.new(nil, {}, [])]
    until scanner.eos?
      next if scanner.skip(/(?:[^<>&]|&\w+;)+/)

      assert scanner.scan(TAG), "no XML: #{scanner.rest[0, 80]}"
      next assert_equal(open.pop.name, scanner[:name]) unless scanner[:end].empty?

      attributes = scanner[:attributes].scan(/([\w.-]+)="([^"]*)"/).to_h
      attributes.transform_values! { |value| CGI.unescapeHTML(value) }
      open.last.children << Element.new(scanner[:name], attributes, [])
      open << open.last.children.last if scanner[:empty].empty?
    end
    assert_equal 1, open.size
    open.first.children
  end

  def trailers(effects, **more)
    Pitwall::Show::ProofTrailers.new(comparison(effects, **more), REPEAT, version: "9.9").to_s.lines(chomp: true)
  end

  def read(effects) = Pitwall::Record::Proof.read(["Reviewed-by: b <b@example.org>", *trailers(effects)])

  def assert_refused(message, lines)
    error = assert_raises(Pitwall::BadRecording) { Pitwall::Record::Proof.read(lines) }
    assert_match(/\A(?:#{Regexp.escape(message)})/, error.message)
    assert_equal 1, error.message.lines.size
  end

  def invented(random, name)
    point = Math.exp(random.rand(-6.0..6.0))
    width = Math.exp(random.rand(-6.0..0.5))
    low, high = point / (1 + width), point * (1 + width)
    verdict = low > 1 ? :slower : high < 1 ? :faster : %i[same undecided].sample(random: random)
    effect(verdict, [point, low, high], a: Math.exp(random.rand(1.0..25.0)), name: name,
                                        pairs: random.rand(8..3000), below_margin: random.rand(9).zero?)
  end

  def counted(random, name)
    a, b = random.rand(0..20_000), random.rand(0..20_000)
    exact({ -1 => :fewer, 0 => :same, 1 => :more }[b <=> a], a, b, name: name)
  end

  def assert_same_effect(effect, claim)
    shown = Pitwall::Show::EffectWords.verdict(effect)
    assert_equal [Pitwall::Show::Text.line(effect.name), effect.metric, shown, effect.pairs, effect.exact],
                 [claim.name, claim.metric, claim.verdict, claim.pairs, claim.exact]
    assert_equal effect.below_margin && shown != :undecided, claim.small
    return assert_nil(claim.point) unless Pitwall::Show::Figures.sized?(effect.ratio)

    %i[point low high].each do |part|
      assert_in_delta effect.ratio[part], claim[part], 0.006 * [1, effect.ratio[part]].max, "#{effect} #{claim}"
      assert_equal effect.ratio[part] <=> 1, claim[part] <=> 1 if part != :point
    end
  end
end
