# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/page_contents"
require_relative "../support/random_recording"
require_relative "../support/shop_recording"
require "json"
require "pitwall/analyse"
require "pitwall/cli"
require "pitwall/record"
require "pitwall/show"
require "pitwall/views"
require "tmpdir"

# The content of pages, parsed without a browser.
class ShowPageTest < Minitest::Test
  include Pitwall
  include PageContents

  # Sums of time by stack and state: the page's rows give the same as the recording's.
  def test_a_page_holds_every_row
    [3, 8, 11].each do |seed|
      recording = RandomRecording.new(seed)
      with_segments(recording.bytes) do |segments|
        object, column = unpack(Show::RecordingPage.new(segments, tabs: [], hints: Pitwall::Views::Hints).to_s)
        names = column.call(object.dig("methods", "name")).map { |id| object["strings"][id] }
        up, methods = %w[up method].map { |name| column.call(object.dig("nodes", name)) }
        stack = lambda do |node|
          path = []
          while node.positive?
            path << names[methods[node - 1]]
            node -= up[node - 1]
          end
          path.reverse
        end
        sums = Hash.new(0)
        object["processes"].each do |process|
          rows = process["rows"] or next
          nodes, walls = %w[nodes wall].map { |name| column.call(rows[name]) }
          %w[threads states captures labels].each do |name|
            assert_equal nodes.size, column.call(rows[name]).each_slice(2).sum(&:last), name
          end
          nodes.zip(walls) do |node, wall|
            sums[node.zero? ? ["(no stack)"] : stack.call(node + process["shift"])] += wall * process["unit_ns"]
          end
        end
        tree = Analyse::CallTreeBuilder.build(segments)
        expected = Hash.new(0)
        tree.selfs(:wall).each_with_index do |wall, node|
          path = []
          at = node
          (path.unshift(tree.methods[tree.node_methods[at]].name); at = tree.parents[at]) while at.positive?
          expected[path] += wall
        end
        assert_equal expected.reject { |_, wall| wall.zero? }, sums.reject { |_, wall| wall.zero? }
      end
    end
  end

  # The documented limit of a page: 1.5 times the recording's size plus 400 KB.
  def test_a_page_is_not_much_larger_than_its_recording
    [ShopRecording.bytes(compress: true), RandomRecording.new(5).bytes].each do |bytes|
      with_segments(bytes) do |segments, path|
        assert_operator Show::RecordingPage.new(segments, tabs: [], hints: Pitwall::Views::Hints).to_s.bytesize, :<=,
                        File.size(path) * 1.5 + 400_000
      end
    end
  end

  # The policy contains the script's hash, and a page loads nothing from other places.
  def test_a_page_is_whole
    with_segments(ShopRecording.bytes) do |segments|
      html = Show::RecordingPage.new(segments, tabs: [], hints: Pitwall::Views::Hints).to_s
      assert_predicate html, :valid_encoding?
      script, style = html[%r{<script>(.*)</script>}m, 1], html[%r{<style>(.*?)</style>}m, 1]
      [script, style].each { |text| assert_includes html, "'sha256-#{[Digest::SHA256.digest(text)].pack("m0")}'" }
      assert_includes script, "Permission is hereby granted", "the licence of what is built in"
      refute_match(/https?:/, html.sub(script, "").sub(style, ""))
      forbidden = /\b(?:fetch|XMLHttpRequest|WebSocket|importScripts|innerHTML|insertAdjacentHTML|outerHTML
                       |document\.write)\b(?=\s*[(=])/x
      assert_empty script.scan(forbidden) - ["innerHTML"]
    end
  end

  def test_source_is_embedded_around_what_weighs_and_only_of_ruby_files
    Dir.mktmpdir do |dir|
      ruby = File.join(dir, "a.rb")
      secret = File.join(dir, "secret.key")
      File.write(ruby, Array.new(40) { |at| "line #{at + 1}\n" }.join)
      File.write(secret, "password\n" * 40)
      bytes = RecordingBuilder.build(started_at_ns: (Time.now.to_i + 60) * 1_000_000_000) do |segment|
        segment.row stack: [["A#b", ruby, 1, 20]], wall: 100
        segment.row stack: [["A#c", secret, 1, 3]], wall: 100
      end
      File.binwrite(path = File.join(dir, "a.pit"), bytes)
      whole, bare, hidden = [[], ["--no-source"], ["--redact"]].map do |options|
        out = StringIO.new
        assert_equal 0, CLI.run(["report", path, "--format", "html", *options], out: out, err: out), out.string
        unpack(out.string).first
      end
      assert_equal [[(17..23).to_a, (17..23).map { |line| "line #{line}" }]],
                   whole["source"].map { |file| file.values_at("lines", "text") }
      assert_empty bare["source"] + hidden["source"]
      assert_nil hidden["base"]
      refute(hidden["strings"].any? { |text| text.include?(dir) })
    end
  end
end
