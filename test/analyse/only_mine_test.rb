# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require "pitwall/analyse"

# The application's frames only, compared with a slow and obvious implementation; and the origin of paths.
class OnlyMineTest < Minitest::Test
  Analyse = Pitwall::Analyse

  MINE = ["/srv/app/lib/a.rb", "app.rb", "bin/rails", "-e", "(eval at /srv/app/a.rb:3)", "/home/ann/other.rb",
          "/srv/app/gems/x.rb", "/srv/app/bin/rails", "/srv/ruby/bin/import", "/srv/lib/import/ruby/x.rb",
          "/srv/gems/my-app/lib/a.rb"].freeze
  OTHERS = ["", "<internal:kernel>", "/usr/lib/ruby/3.4.0/set.rb", "/usr/lib/ruby/vendor_ruby/rubygems.rb",
            "/usr/bin/puma", "/srv/bundle/ruby/3.1.0/bin/puma", "/home/a/.rbenv/versions/3.4.1/bin/rake",
            "/opt/rubies/ruby-3.4.1/bin/rake",
            "/usr/lib/x86_64-linux-gnu/ruby/3.1.0/openssl.so", "/usr/lib/x86_64-linux-gnu/ruby/vendor_ruby/3.1.0/x.rb",
            "/usr/lib/ruby/gems/3.4.0/gems/rack-3.1.8/lib/rack.rb", "/srv/app/vendor/bundle/ruby/3.4.0/x.rb",
            "/var/bundler/gems/rack-1f2e3d4c5b6a/lib/rack.rb", "(eval at /usr/lib/ruby/3.4.0/erb.rb:3)",
            "(outside)/0123456789ab.rb", File.expand_path("../../lib/pitwall/rack.rb", __dir__)].freeze

  def test_whose_code_a_path_is
    origin = Analyse::Origin.new(base: "/srv/app")
    MINE.each { |path| assert origin.path?(path), path }
    OTHERS.each { |path| refute origin.path?(path), path }
  end

  # A gem that is being developed is the application's code.
  def test_the_path_below_the_base_decides
    assert Analyse::Origin.new(base: "/srv/gems/shop-1.2.3").path?("/srv/gems/shop-1.2.3/lib/shop.rb")
    refute Analyse::Origin.new(base: "/srv/gems/shop-1.2.3").path?("/srv/gems/rack-1.2.3/lib/rack.rb")
  end

  # Files 0 and 1 are the application's, and file 2 is not.
  class Two < Analyse::Origin
    def path?(path) = path.start_with?("/app/") && path != "/app/2.rb"
  end

  def own(stack)
    stack.select { |name, path, _, _, kind| kind == 2 || (kind.to_i.zero? && Two.new.path?(path) && name) }
  end

  # The same sums, by the innermost frame that is shown.
  def test_random_recordings
    20.times do |seed|
      recording = RandomRecording.new(seed)
      segments = RandomRecording.read(recording.bytes).segments
      query = Analyse::Report::Query.new(only_mine: true, origin: Two.new, waits: true)
      report = Analyse::Report.new(segments, query)
      expected = recording.samples.each_with_object(Hash.new(0)) do |sample, sums|
        unit = [1, 1000][sample.segment % 2]
        last = own(sample.stack).last
        name = last ? last.first : (sample.stack.empty? ? "(no stack)" : "(other code)")
        sums[name] += sample.wall * unit
      end
      found = report.flat.to_h { |row| [row.method.name, row.own] }
      assert_equal expected.reject { |_, ns| ns.zero? }, found.reject { |_, ns| ns.zero? }
      assert_equal Analyse::Report.new(segments).total, report.total
    end
  end
end
