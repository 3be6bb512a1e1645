# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../support/random_recording"
require "pitwall/analyse"
require "pitwall/analyse/recording/redaction"
require "pitwall/analyse/recording/strings"

class RedactionTest < Minitest::Test
  PATHS = ["/srv/app/lib/a.rb", "/home/ann/b.rb", "../ann/b.rb",
           "<internal:/usr/lib/ruby/rubygems/core_ext/kernel_require.rb>", "(eval at /home/ann smith/b.rb:3)",
           "(eval at /srv/app/lib/a.rb:12)", "(eval)", "(eval at -e:1)", "<internal:kernel>", "lib/a.rb", "-e"].freeze

  def test_no_path_of_the_host_is_left
    redaction = Pitwall::Analyse::Redaction.new(base: "/srv/app")
    redacted = PATHS.map { |path| redaction.path(path) }
    refute_match(/ann|usr|srv/, redacted.join("\n"))
    assert_equal ["lib/a.rb", "(eval at lib/a.rb:12)", "(eval)", "(eval at -e:1)", "<internal:kernel>", "lib/a.rb",
                  "-e"], redacted.values_at(0, 5..10)
    assert_match(%r{\A<internal:\(outside\)/\h{12}\.rb>\z}, redacted[3])
    assert_match(%r{\A\(eval at \(outside\)/\h{12}\.rb:3\)\z}, redacted[4])
  end

  def test_code_without_a_file_is_a_class_of_its_own
    bytes = RecordingBuilder.build { |segment| PATHS.each { |path| segment.row(stack: [["m", path, 1, 1]]) } }
    segments = RandomRecording.read(bytes).segments
    kinds = Pitwall::Analyse::Strings.kinds(segments, base: "/srv/app").to_h { |kind| [kind.name, kind.strings] }
    assert_equal PATHS.grep(/\A[<(]|-e\z/).sort, kinds["code of Ruby itself, evaluated or typed in"]
    assert_equal [["/srv/app/lib/a.rb", "lib/a.rb"], ["../ann/b.rb", "/home/ann/b.rb"]],
                 kinds.values_at("paths inside the working directory", "other paths")
  end
end
