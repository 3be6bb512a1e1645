# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require "pitwall/analyse"
require "tmpdir"

class TraceFiltersTest < Minitest::Test
  # Messages for a traced recording of a program "bin/shop.rb" that loaded /srv/app/lib/cart.rb.
  def unmatched(path, program: "bin/shop.rb", base: nil)
    settings = { "collectors" => { "trace" => { "path" => path } } }
    bytes = RecordingBuilder.build(settings: settings) do |segment|
      segment.calls(stack: [["<main>", program, 1, 1], ["Cart#sum", "/srv/app/lib/cart.rb", 3, 4]])
      segment.traced
    end
    segments = RandomRecording.read(bytes).segments
    Pitwall::Analyse::TraceFilters.warnings(segments, base: base).map(&:message)
  end

  def test_relative_paths_are_below_the_base
    assert_empty unmatched("/srv/app/bin/*", base: "/srv/app")
    assert_empty unmatched("/srv/bin/shop.rb", program: "../bin/./shop.rb", base: "/srv/app")
    assert_equal ["no Ruby code in /srv/shop/bin/* ran (--path)"], unmatched("/srv/shop/bin/*", base: "/srv/app")
    assert_empty unmatched("/srv/app/lib/*", base: "/elsewhere")
  end

  # What a report says must not depend on the folder that it is made in.
  def test_the_working_directory_does_not_matter
    patterns = ["/srv/app/bin/*", "/srv/app/*.rb", "/nope/bin/shop.rb", "*/shop.rb", "/nope/lib/*"]
    found = ["/", Dir.tmpdir, __dir__].map { |folder| Dir.chdir(folder) { patterns.map { |path| unmatched(path) } } }
    assert_equal 1, found.uniq.size
  end

  # Without a base, a filter matches if it would match for any folder.
  def test_without_a_base_only_what_cannot_match_is_named
    matching = ["/srv/app/bin/*", "/anywhere/bin/shop.rb", "*shop.rb", "/srv/*.rb", "/a/b?n/shop.rb", "/any/[b]in/*"]
    matching.each { |path| assert_empty unmatched(path), path }
    ["/srv/app/spec/cart.rb", "shop.rb", "bin/shop.rb", "/srv/app/bin/shop", "/any/bin/shop.rbx"].each do |path|
      assert_equal ["no Ruby code in #{path} ran (--path)"], unmatched(path), path
    end
  end
end
