# frozen_string_literal: true

require_relative "lib/pitwall/version"
require_relative "script/bench_child"

begin
  BenchChild.write(__dir__)
rescue SystemCallError
  nil # Bundler also evaluates this file in folders that it cannot write. `pitwall bench` says what is missing there.
end

Gem::Specification.new do |spec|
  spec.name = "pitwall-core"
  spec.version = Pitwall::VERSION
  spec.summary = "The part of Pitwall that runs inside your program"
  spec.description = "Pitwall's collectors: a C extension and the little Ruby that starts it. It depends on no gem, " \
                     "so it can stand in any Gemfile. The command that starts it and reads its recordings is " \
                     "the gem pitwall."
  spec.authors = ["The Pitwall developers"]
  spec.homepage = "https://rubygems.org/gems/pitwall"
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"
  spec.metadata = { "rubygems_mfa_required" => "true" }

  # This gem has the files that are loaded into programs under measurement. The gem pitwall has all others.
  # A file is in exactly one of the two gems (test/gems_test.rb).
  spec.files = Dir.chdir(__dir__) do
    # "pitwall/NAME" is the `require` path of integrations/NAME.rb.
    required = Dir["lib/pitwall/integrations/*.rb"].map { |file| "lib/pitwall/#{File.basename(file)}" }
    found = Dir["ext/**/*.{c,h,rb}", "lib/pitwall.rb",
                "lib/pitwall/{application,version,errors,native,compat,fastboot}.rb",
                "lib/pitwall/{collect,fastboot,integrations,bench_child}/**/*.rb", "doc/record-format.md", "LICENSE*"]
    # By name: `gem build` fails where the assembled file could not be written.
    (found | required | ["lib/pitwall/bench_child/assembled.rb"]).sort
  end
  spec.extensions = ["ext/pitwall/extconf.rb", "ext/fastboot/extconf.rb"]
end
